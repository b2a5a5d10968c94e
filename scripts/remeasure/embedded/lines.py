"""The candidate lines of a page: "TITLE - label: value" rows and prose sentences.

One function for page images (from OCR boxes) and one for Markdown passages. The line encoder and the page
reader call the same functions, so that every line of a corpus has its vector before the first question.
"""

import re

from remeasure.embedded.layout import Layout, read_layout
from remeasure.records import OcrImage

# A sentence ends here, unless the word before is one of the usual abbreviations or an initial.
_END = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[\"'(\[]?[A-Z0-9])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:St|Mt|Mr|Mrs|Dr|Gen|Col|Ft|No|Jr|Sr|vs|ca|approx|est|e\.g|i\.e|etc|al|Inc|Co|Ltd)|\b[A-Z])\.$"
)
_RULE = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,})\s*$")
_CELL_RULE = re.compile(r"^[\s|:-]+$")
_MARK = re.compile(r"\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)|`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
# A row's label: letters in the first of at least two cells.
_LABEL = re.compile(r"^\|[ \t]*([^|\n]*[^\W\d_][^|\n]*?)[ \t]*\|[ \t]*[^|\s-]", re.MULTILINE)
_LEAD = re.compile(r"^\*\*([^*\n]{2,60}[^*\n:])\*\*(?!:)", re.MULTILINE)
_MIN_PROSE_LETTERS = 3


def tile_lines(image: OcrImage) -> list[str]:
    """Return the candidate lines of one page image, rows of tables first, no line twice.

    Edges:
        A picture without text gives an empty list.
    """
    return layout_lines(read_layout(image))


def layout_lines(layout: Layout) -> list[str]:
    """Return the candidate lines of a page whose parts are known."""
    found = [row(layout.title, part.label, part.value) for part in layout.rows]
    heading = ""
    for paragraph in layout.paragraphs:
        if paragraph.is_heading:
            heading = paragraph.text
            continue
        found += prose(layout.title, heading, paragraph.text)
    return _distinct(found)


def text_lines(text: str) -> list[str]:
    """Return the candidate lines of a Markdown passage, in the order of the text, no line twice.

    The title of a passage is its first-level heading, or else the bold words that its running text begins
    with, as encyclopedias do. Passages are parted as in ``split_passages``.

    Edges:
        Empty text gives an empty list.
    """
    found: list[str] = []
    for passage in split_passages(text):
        title, heading = _lead(passage), ""
        for block in _blocks(passage):
            for part in _parts(block):
                if part.startswith("# "):
                    title, heading = _plain(part[2:]), ""
                elif part.startswith("#"):
                    heading = _plain(part.lstrip("# "))
                elif part.startswith("|"):
                    found += _table(title, part)
                else:
                    found += prose(title, heading, _plain(part))
    return _distinct(found)


def split_passages(text: str) -> list[str]:
    """Split joined passages at rules, at two or more blank lines, and before a table with labels seen before.

    Edges:
        Empty text, or blanks only, gives an empty list.
    """
    marked = "\n".join("\n\n" if _RULE.match(line) else line for line in text.splitlines())
    found: list[str] = []
    for part in re.split(r"\n[ \t]*\n[ \t]*\n\s*", marked):
        if part.strip():
            found += _split_at_repeats(part)
    return found


def _split_at_repeats(text: str) -> list[str]:
    """Split before every table that has a label of an earlier one: it is about something else."""
    parts: list[list[str]] = [[]]
    seen: set[str] = set()
    for block in _blocks(text):
        labels = {match.group(1) for match in _LABEL.finditer(block)}
        if labels & seen:
            parts.append([])
            seen = set()
        seen |= labels
        parts[-1].append(block)
    return ["\n\n".join(part) for part in parts]


def _blocks(passage: str) -> list[str]:
    return re.split(r"\n\s*\n", passage)


def _lead(passage: str) -> str:
    """Return the bold words that a passage's running text begins with; a bold label (``**A:**``) is none."""
    found = _LEAD.search(passage)
    return _plain(found.group(1)) if found else ""


def row(title: str, label: str, value: str) -> str:
    """Write a label and its value as one line."""
    start = f"{title} - " if title else ""
    return f"{start}{label.rstrip(' :')}: {value}"


def value_of(line: str) -> str | None:
    """Return the value of a row, None where the line is prose: without a colon, or closed like a sentence."""
    _, mark, value = line.partition(": ")
    return value if mark and not value.endswith((".", "!", "?")) else None


def title_of(line: str) -> str | None:
    """Return the title of a line, None where it has none."""
    title, mark, _ = line.partition(": ")[0].partition(" - ")
    return title if mark else None


def spoken(line: str) -> str:
    """Write a row the way one would say it: "TITLE - label: value" becomes "label of TITLE: value"."""
    title, value = title_of(line), value_of(line)
    if title is None or value is None:
        return line
    label = line[len(title) + 3 : len(line) - len(value) - 2]
    return f"{label} of {title}: {value}"


def prose(title: str, heading: str, text: str) -> list[str]:
    """Return the sentences of a paragraph, each with the title and the heading that it stands under."""
    start = " - ".join(part for part in (title, heading) if part)
    return [
        f"{start}: {sentence}" if start else sentence
        for sentence in sentences(text)
        if sum(letter.isalnum() for letter in sentence) >= _MIN_PROSE_LETTERS
    ]


def sentences(text: str) -> list[str]:
    """Split running text into sentences; abbreviations and initials end none.

    Edges:
        Empty text gives an empty list.
    """
    found: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        if _ABBREVIATION.search(text[begin : end.start()]):
            continue
        found.append(text[begin : end.end()].strip())
        begin = end.end()
    found.append(text[begin:].strip())
    return [sentence for sentence in found if sentence]


def _parts(block: str) -> list[str]:
    """Part a block of Markdown into headings, tables, list items and paragraphs."""
    parts: list[str] = []
    kind = ""
    for line in (line.strip() for line in block.splitlines()):
        now = (
            "#" if line.startswith("#") else "|" if "|" in line else "-" if re.match(r"[-*+] ", line) else ""
        )
        text = line[2:] if now == "-" else line
        if parts and now == kind and now in ("|", ""):
            parts[-1] += ("\n" if now == "|" else " ") + text
        elif parts and kind == "-" and now == "":
            parts[-1] += " " + text
            continue
        elif text:
            parts.append(f"| {text}" if now == "|" and not text.startswith("|") else text)
        kind = now
    return parts


def _kind(line: str) -> str:
    """Say what a line of Markdown is: a heading, part of a table, a list item or text."""
    if line.startswith("#"):
        return "#"
    if "|" in line:
        return "|"
    return "-" if re.match(r"[-*+] ", line) else ""


def _table(title: str, block: str) -> list[str]:
    """Return the rows of a Markdown table; with more than two columns every cell has its column's heading."""
    grid = [
        [_plain(cell) for cell in line.strip().strip("|").split("|")]
        for line in block.splitlines()
        if not _CELL_RULE.match(line)
    ]
    width = max((len(cells) for cells in grid), default=0)
    if width <= 2:
        return [row(title, *cells) for cells in grid if len(cells) == 2 and all(cells)]
    header, *body = grid
    return [
        row(title, f"{cells[0]}, {head}" if head else cells[0], cell)
        for cells in body
        if cells[0]
        for head, cell in zip(header[1:], cells[1:], strict=False)
        if cell
    ]


def _plain(text: str) -> str:
    """Remove Markdown's emphasis and links, join white space."""
    return " ".join(_MARK.sub("", _LINK.sub(r"\1", text)).split())


def _distinct(lines: list[str]) -> list[str]:
    return list(dict.fromkeys(lines))
