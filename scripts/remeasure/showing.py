"""Texts of others, shown: nothing in them is markup, and nothing in them is invisible."""

import re
import unicodedata

_MARKUP = re.compile(r"[\\`*<>&|\[\]$]")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def seen(text: str) -> str:
    """Return a text whose invisible characters stand as their number; line ends and tabs stay."""
    return "".join(_numbered(character) if _is_hidden(character) else character for character in text)


def _is_hidden(character: str) -> bool:
    # The joiner between emoji is no hiding place.
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co") and character not in "\n\t\u200d"


def _numbered(character: str) -> str:
    return f"\u27e8U+{ord(character):04X}\u27e9"


def markdown(text: str) -> str:
    """Return a text for a line of Markdown: in one line, and without markup; underscores stay."""
    line = seen(" ".join(text.split()))
    plain = _MARKUP.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), line)
    return f"\\{plain}" if plain.startswith(("#", "-", "+")) and not plain[1:2].isdigit() else plain
