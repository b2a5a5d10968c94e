"""What all pictures of tables share: colours, letters, measured text, words for who cannot see them."""

import functools
from html import escape
from typing import Any

# Okabe and Ito's palette, told apart with every kind of colour vision; grey is the arm without evidence.
COLOURS = ("#999999", "#E69F00", "#56B4E9", "#0072B2", "#009E73", "#CC79A7", "#D55E00")
INK = "#222222"
FAINT = "#666666"
ALARM = "#A3320B"
GRID = "#E6E6E6"
WIDTH_IN = 8.6
N_ACROSS = 3
LEFT_IN = 0.3182
STYLE = {
    "svg.hashsalt": "remeasure",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": "#BBBBBB",
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": FAINT,
    "path.simplify": False,
}
PT_PER_IN = 72.0


@functools.cache
def width_pt(text: str, size_pt: float, weight: str = "normal") -> float:
    """Return how wide a line of text is drawn, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", weight=weight, size=size_pt)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def wrapped(text: str, room_pt: float, size_pt: float, n_lines: int, weight: str = "normal") -> list[str]:
    """Return a text in lines that fit; what is left over ends in an ellipsis.

    Args:
        text: words.
        room_pt: width of a line.
        size_pt: of the letters.
        n_lines: at most.
        weight: of the letters.
    """
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if not lines[-1] or width_pt(longer, size_pt, weight) <= room_pt:
            lines[-1] = longer
        else:
            lines.append(word)
    if len(lines) > n_lines:
        lines = [*lines[: n_lines - 1], " ".join(lines[n_lines - 1 :])]
    return [_cut(line, room_pt, size_pt, weight) for line in lines]


def _cut(line: str, room_pt: float, size_pt: float, weight: str) -> str:
    if width_pt(line, size_pt, weight) <= room_pt:
        return line
    while line and width_pt(f"{line}…", size_pt, weight) > room_pt:
        line = line[:-1].rstrip()
    return f"{line}…"


def plain(text: str) -> str:
    """Return a text that Matplotlib draws as it stands: a dollar sign opens no formula."""
    return text.replace("$", r"\$")


def name_row(axes: Any, place: int, lines: list[str], size_pt: float, gap_pt: float) -> None:
    """Write the name of a row left of a panel.

    Args:
        axes: the panel.
        place: height of the row in the panel's numbers.
        lines: the name as it is wrapped.
        size_pt: of the letters.
        gap_pt: between name and panel.
    """
    axes.annotate(
        plain("\n".join(lines)),
        (0, place),
        xycoords=("axes fraction", "data"),
        xytext=(-gap_pt, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=size_pt,
        linespacing=1.05,
        annotation_clip=False,
    )


def with_words(svg: str, title: str, words: str) -> str:
    """Put a title and a description into the root element."""
    head, tag, rest = svg.partition("<svg ")
    attributes, close, body = rest.partition(">")
    described = f"\n <title>{escape(title)}</title>\n <desc>{escape(words)}</desc>"
    text = f'{head}{tag}role="img" {attributes}{close}{described}{body}'
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def header(figure: Any, title: list[str], subtitle: list[str], colour: str = FAINT) -> float:
    """Draw title and subtitle at the top; return how far down they reach, in inches."""
    height = figure.get_figheight()
    left = LEFT_IN / figure.get_figwidth()
    down = 0.2
    for line in title:
        figure.text(left, 1 - down / height, plain(line), fontsize=12, fontweight="bold", va="center")
        down += 0.21
    for line in subtitle:
        figure.text(left, 1 - down / height, plain(line), fontsize=8.5, color=colour, va="center")
        down += 0.15
    return down
