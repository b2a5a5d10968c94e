"""A simple way to cut texts into chunks, for corpora that are passages already.

haiku.rag's own way (docling) parses a text as Markdown first: 0.3 seconds for a short passage, and a passage
that holds punctuation of Markdown is parsed oddly. This one only looks for ends of sentences.
"""

import re

_TOKEN = re.compile(r"\w+|[^\w\s]")
_END = re.compile(r"[.!?][\"')\]]*(?=\s)|\n")


def chunks_of(text: str, most: int) -> list[str]:
    """Cut a text into pieces of at most so many tokens, in order.

    A token is a run of letters, digits and underscores, or one other character that is no white space. A
    piece ends with the last sentence or line that ends in its second half, else after its last token.

    Args:
        text: of a document.
        most: tokens of a piece, at least 1.

    Returns:
        Pieces without white space around them; together they hold every token once. A text of white space has
        none.
    """
    ends = [match.end() for match in _TOKEN.finditer(text)]
    pieces, start, first = [], 0, 0
    while first < len(ends):
        last = min(first + most, len(ends))
        cut = ends[last - 1]
        if last < len(ends):
            half = ends[first + (last - first - 1) // 2]
            ended = (match.end() for match in _END.finditer(text, start, cut + 1))
            sentences = [end for end in ended if half <= end <= cut]
            cut = sentences[-1] if sentences else cut
        pieces.append(text[start:cut].strip())
        start = cut
        while first < len(ends) and ends[first] <= cut:
            first += 1
    return pieces
