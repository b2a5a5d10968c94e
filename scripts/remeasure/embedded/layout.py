"""What stands where on a page image: title, infobox rows, table rows and paragraphs from OCR boxes.

Everything is pure geometry on the boxes of one image, in pixels. The thresholds are shares of the median
height of a text line, so that the font size of a page does not matter.
"""

import statistics
from dataclasses import dataclass

from remeasure.records import OcrImage

_ALIGNED_PX = 12  # boxes of one column begin within this distance of its edge


@dataclass(frozen=True)
class Box:
    """A piece of text and where it stands, in pixels of the image."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def middle(self) -> float:
        """Vertical centre."""
        return (self.y0 + self.y1) / 2

    @property
    def letter_width(self) -> float:
        """Mean width of a letter."""
        return (self.x1 - self.x0) / len(self.text)

    @property
    def height(self) -> float:
        """Height of the box."""
        return self.y1 - self.y0


@dataclass(frozen=True)
class Row:
    """A label with its value, in reading order at ``y_px``."""

    y_px: float
    label: str
    value: str


@dataclass(frozen=True)
class Paragraph:
    """Joined lines of running text with the height of their letters, in reading order at ``y_px``."""

    y_px: float
    text: str
    is_heading: bool


@dataclass(frozen=True)
class Layout:
    """The parts of one page image; ``title`` is empty where nothing stands out as one."""

    title: str
    rows: tuple[Row, ...]
    paragraphs: tuple[Paragraph, ...]


def read_layout(image: OcrImage) -> Layout:
    """Sort the text of a page image into title, label and value rows, and paragraphs.

    Edges:
        An image without text gives an empty layout.
    """
    boxes = [Box(line.text.strip(), *line.box) for line in image.lines if line.text.strip()]
    if not boxes:
        return Layout("", (), ())
    unit = statistics.median(box.height for box in boxes)
    title, rest = _take_title(boxes, image, unit)
    rest = [box for box in rest if box.height < 2.5 * unit]  # what OCR sees in pictures
    infobox, rest = _take_infobox(rest, image.width_px)
    rows = infobox_rows(infobox, unit) if infobox else []
    more, paragraphs = _main_column(rest, unit)
    return Layout(title, tuple(rows + more), tuple(paragraphs))


def _take_title(boxes: list[Box], image: OcrImage, unit: float) -> tuple[str, list[Box]]:
    """The title is the tallest text near the top left, if it is clearly taller than the rest; it may wrap."""
    near = [box for box in boxes if box.y0 < 0.15 * image.height_px and box.x0 < 0.4 * image.width_px]
    near.sort(key=lambda box: box.y0)
    tallest = max(near, key=lambda box: box.height, default=None)
    if tallest is None or tallest.height < 1.2 * unit:
        return "", boxes
    alike = [box for box in near if box.height > 0.8 * tallest.height and abs(box.x0 - tallest.x0) < unit]
    parts: list[Box] = []
    for box in alike:
        if not parts or box.y0 - parts[-1].y1 < 0.4 * tallest.height:
            parts.append(box)
    return " ".join(part.text for part in parts), [box for box in boxes if box not in parts]


def _columns(boxes: list[Box], tolerance_px: float = 9) -> list[tuple[float, int]]:
    """Return (left edge, number of boxes) of every group of boxes that begin at the same x, left to right."""
    groups: list[list[float]] = []
    for x in sorted(box.x0 for box in boxes):
        if groups and x - groups[-1][-1] <= tolerance_px:
            groups[-1].append(x)
        else:
            groups.append([x])
    return [(statistics.median(group), len(group)) for group in groups]


def _take_infobox(boxes: list[Box], width_px: int) -> tuple[list[Box], list[Box]]:
    """Part the boxes of an infobox in the right half of the page from the others."""
    columns = _columns([box for box in boxes if box.x0 > 0.4 * width_px])
    largest = max((count for _, count in columns), default=0)
    edge = next((x for x, count in columns if count >= max(3, 0.4 * largest)), None)
    if edge is None:
        return [], boxes
    right = [box for box in boxes if box.x0 >= edge - _ALIGNED_PX]
    labels = [box for box in right if box.x0 < edge + _ALIGNED_PX]
    left = [box for box in boxes if box.x0 < edge - _ALIGNED_PX]
    unit = statistics.median(box.height for box in right)
    level = sum(any(abs(label.middle - box.middle) < 0.15 * unit for box in left) for label in labels)
    if level > 0.8 * len(labels):
        return [], boxes  # level with what stands at the left: a column of a wide table
    bottom = max(box.y1 for box in labels)
    # A picture with a caption stands above the labels, the last value may end below them.
    inside = [box for box in right if box.middle <= bottom + 4 * unit]
    return inside, [box for box in boxes if box not in inside]


def infobox_rows(boxes: list[Box], unit: float) -> list[Row]:
    """Pair the labels of a two-column table with their values.

    Wrapped labels and wrapped values are joined; a value belongs to the label whose vertical centre is
    nearest and that stands beside it. OCR sometimes returns label and value as one box: it is cut at the
    value column.

    Args:
        boxes: all text of the table.
        unit: median height of a text line, pixels.
    """
    edge = min(box.x0 for box in boxes)
    beyond = _columns([box for box in boxes if box.x0 > edge + 2 * unit])
    if not beyond:
        return []
    largest = max(count for _, count in beyond)
    value_edge = next(x for x, count in beyond if count >= 0.6 * largest)
    labels: list[Box] = []
    values: list[Box] = []
    for box in sorted(boxes, key=lambda box: box.middle):
        if box.x0 >= value_edge - _ALIGNED_PX:
            values.append(box)
        elif box.x0 < edge + _ALIGNED_PX:
            beside = _value_beside(box, boxes, value_edge)
            label, value = (box, None) if beside else _cut(box, value_edge, unit)
            labels.append(label)
            values += [value] if value else []
    limit, tight = _spacing(labels, values, unit)
    label_groups = _group(labels, values, limit, tight, unit)
    value_groups = _group(values, labels, limit, tight, unit)
    found: dict[int, list[Box]] = {}
    for group in value_groups:
        near = min(
            range(len(label_groups)),
            key=lambda i: abs(_centre(label_groups[i]) - _centre(group)),
            default=None,
        )
        if near is not None and _overlap(label_groups[near], group) >= 0.4 * unit:
            found.setdefault(near, []).extend(group)
    return [Row(label_groups[i][0].y0, _joined(label_groups[i]), _joined(found[i])) for i in sorted(found)]


def _value_beside(label: Box, boxes: list[Box], value_edge: float) -> bool:
    """Whether a box of the value column stands on the label's line."""
    return any(
        box.x0 >= value_edge - _ALIGNED_PX and abs(box.middle - label.middle) < 0.4 * label.height
        for box in boxes
    )


def _cut(box: Box, value_edge: float, unit: float) -> tuple[Box, Box | None]:
    """Cut a box that reaches over the value column at the space nearest to the column's edge."""
    spaces = [i for i, letter in enumerate(box.text) if letter == " "]
    if box.x1 < value_edge + 0.5 * unit or not spaces:
        return box, None
    wanted = len(box.text) * (value_edge - box.x0) / (box.x1 - box.x0) - 0.5
    at = min(spaces, key=lambda i: abs(i - wanted))
    return (
        Box(box.text[:at], box.x0, box.y0, value_edge - 1, box.y1),
        Box(box.text[at + 1 :], value_edge, box.y0, box.x1, box.y1),
    )


def _partners(column: list[Box], other: list[Box], unit: float) -> list[bool]:
    """Say of each line of a column whether a line of the other column stands beside it."""
    return [any(abs(box.middle - beside.middle) < 0.3 * unit for beside in other) for box in column]


def _spacing(labels: list[Box], values: list[Box], unit: float) -> tuple[float, bool]:
    """Find the distance up to which two lines belong to one cell.

    Lines of a cell are closer than rows: the distances that occur are split in two so that both parts are
    as alike in themselves as they can be.

    Returns:
        The largest distance inside a cell, pixels, and whether rows with partners stand just as close, so
        that partners must decide.
    """
    gaps: list[tuple[float, bool]] = []
    for column, other in ((labels, values), (values, labels)):
        partners = _partners(column, other, unit)
        for i, (above, below) in enumerate(zip(column, column[1:], strict=False)):
            gap = below.middle - above.middle
            if 0.5 * unit < gap < 1.6 * unit:
                gaps.append((gap, partners[i] and partners[i + 1]))
    gaps.sort()
    splits = [
        (_spread(gaps[:i]) + _spread(gaps[i:]), _mean(gaps[:i]), _mean(gaps[i:])) for i in range(1, len(gaps))
    ]
    _, near, far = min(splits, default=(0.0, 0.0, 0.0))
    if far - near < 0.12 * unit:
        return (gaps[0][0] if gaps else unit) + 0.2 * unit, True
    limit = (near + far) / 2
    rows = [gap for gap, is_row in gaps if is_row]
    return limit, sum(gap <= limit for gap in rows) > 0.5 * len(rows)


def _mean(gaps: list[tuple[float, bool]]) -> float:
    return statistics.fmean(gap for gap, _ in gaps)


def _spread(gaps: list[tuple[float, bool]]) -> float:
    """Sum of squared differences from the mean."""
    middle = _mean(gaps)
    return sum((gap - middle) ** 2 for gap, _ in gaps)


def _group(column: list[Box], other: list[Box], limit: float, tight: bool, unit: float) -> list[list[Box]]:
    """Join the lines of wrapped cells; where rows are tight, two lines with partners are two rows."""
    partners = _partners(column, other, unit)
    groups: list[list[Box]] = []
    for i, box in enumerate(column):
        two_rows = tight and partners[i] and partners[i - 1]
        if i and box.middle - column[i - 1].middle <= limit and not two_rows:
            groups[-1].append(box)
        else:
            groups.append([box])
    return groups


def _centre(group: list[Box]) -> float:
    return (group[0].middle + group[-1].middle) / 2


def _nearest(groups: list[list[Box]], group: list[Box]) -> int | None:
    """Position of the group with the nearest vertical centre; the upper one of two."""
    centre = _centre(group)
    return min(range(len(groups)), key=lambda i: abs(_centre(groups[i]) - centre), default=None)


def _overlap(first: list[Box], second: list[Box]) -> float:
    """Height that two groups of lines share, pixels; negative where they do not touch."""
    return min(first[-1].y1, second[-1].y1) - max(first[0].y0, second[0].y0)


def _joined(boxes: list[Box]) -> str:
    return join_lines([box.text for box in boxes])


def join_lines(lines: list[str]) -> str:
    """Join wrapped lines with blanks, without one after a hyphen that parts two letters."""
    text = ""
    for line in lines:
        hyphen = len(text) > 1 and text.endswith("-") and text[-2].isalpha() and line[:1].isalpha()
        text += ("" if hyphen or not text else " ") + line
    return text


def _main_column(boxes: list[Box], unit: float) -> tuple[list[Row], list[Paragraph]]:
    """Table rows and paragraphs of everything beside and below the infobox."""
    visual = _visual_rows(boxes, unit)
    rows: list[Row] = []
    prose: list[Box] = []
    table: list[list[Box]] = []
    for cells in [*visual, []]:
        if len(cells) > 1:
            table.append(cells)
            continue
        rows += _table_rows(table, unit)
        table = []
        prose += cells
    return rows, _paragraphs(prose, unit)


def _visual_rows(boxes: list[Box], unit: float) -> list[list[Box]]:
    """Boxes on one line, left to right; pieces of one sentence, less than a wide space apart, are joined."""
    lines: list[list[Box]] = []
    for box in sorted(boxes, key=lambda box: (box.middle, box.x0)):
        if lines and box.middle - lines[-1][0].middle < 0.5 * unit:
            lines[-1].append(box)
        else:
            lines.append([box])
    joined: list[list[Box]] = []
    for line in lines:
        cells: list[Box] = []
        for box in sorted(line, key=lambda box: box.x0):
            if cells and box.x0 - cells[-1].x1 < 0.9 * unit:
                last = cells.pop()
                box = Box(
                    f"{last.text} {box.text}",
                    last.x0,
                    min(last.y0, box.y0),
                    max(last.x1, box.x1),
                    max(last.y1, box.y1),
                )
            cells.append(box)
        joined.append(cells)
    return joined


def _table_rows(table: list[list[Box]], unit: float) -> list[Row]:
    """Rows of a table in the main column: two columns as label and value, more with the heading of each."""
    if not table:
        return []
    if max(len(cells) for cells in table) == 2:
        return infobox_rows([box for cells in table for box in cells], unit)
    header, *body = table
    rows = []
    for label, *cells in body:
        for cell in cells:
            head = min(header, key=lambda box: _distance(box, cell))
            rows.append(Row(cell.y0, f"{label.text}, {head.text}", cell.text))
    return rows


def _distance(head: Box, cell: Box) -> float:
    """How far a cell is from standing under a heading, by the nearer of left edge, centre and right edge."""
    middle = abs((head.x0 + head.x1) - (cell.x0 + cell.x1)) / 2
    return min(abs(head.x0 - cell.x0), abs(head.x1 - cell.x1), middle)


def _other_size(one: Box, other: Box) -> bool:
    """Whether two lines are of different letter size: by height, which OCR blurs, and by width per letter."""
    small, large = sorted((one, other), key=lambda box: box.height)
    return large.height > 1.15 * small.height and large.letter_width > 1.15 * small.letter_width


def _paragraphs(lines: list[Box], unit: float) -> list[Paragraph]:
    """Join lines of one height that follow closely; taller or lone short lines are headings."""
    groups: list[list[Box]] = []
    for line in lines:
        above = groups[-1][-1] if groups else None
        if above is not None and line.y0 - above.y1 < 0.6 * unit and not _other_size(line, above):
            groups[-1].append(line)
        else:
            groups.append([line])
    return [
        Paragraph(
            group[0].y0,
            _joined(group),
            is_heading=len(group) == 1 and group[0].height > 1.1 * unit and not group[0].text.endswith("."),
        )
        for group in groups
    ]
