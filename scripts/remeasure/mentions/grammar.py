"""Word lists of the two rules that look around a mention: context and negation."""

from remeasure.mentions.preparing import Prepared

_DETERMINERS = frozenset(
    "a an the this that these those one another each every some any his her its their my our your".split()
)
_COLOUR_MODIFIERS = frozenset("bright dark light pale deep vivid burnt neon".split())
_FUNCTION_WORDS = frozenset(
    "a an the and or but nor as that which who while next is are was were be been being has have had "
    "of in on at by to with from for near beside between under over behind into onto along inside atop "
    "against above below around".split()
)
_VERBS_OF_POSITION = frozenset(
    "sit sits sitting lie lies lying rest rests resting stand stands standing hang hangs hanging "
    "float floats floating roll rolls rolling fall falls falling lean leans leaning "
    "appear appears appearing seem seems seeming look looks looking "
    "placed shown visible can will also".split()
)
_MAY_FOLLOW = _FUNCTION_WORDS | _VERBS_OF_POSITION
_STOPS = _FUNCTION_WORDS | _COLOUR_MODIFIERS
_LIKENESS = frozenset("shaped themed patterned sized".split())
ALSO_ADJECTIVES = frozenset(["orange", "remote"])
"""Forms that are looked at more closely; their plurals always count."""
_MOST_CONTENT_WORDS = 2

_NEGATORS = frozenset("no not without never neither nor".split())
_ABSENCE = frozenset("absence lack free devoid".split())
_CONTRASTS = frozenset("but though although while whereas however yet except instead".split())
_BE_HAVE = frozenset("be am is are was were been being have has had having".split())
_GONE = frozenset("missing gone absent".split())
_NO_LONGER = ("no", "longer")
_ONCE = (("used", "to", "be"), ("once", "was"), ("had", "been"))
_WINDOW = 3
_TRIGGERS = _NEGATORS | _ABSENCE | _GONE | {"longer", "where"}


def counts_in_context(text: Prepared, start: int, stop: int) -> bool:
    """Say whether words ``start`` to before ``stop`` count as a mention under the context rule.

    A mention with a hyphen and *shaped*, *themed*, *patterned* or *sized* behind it does not count. *orange*
    and *remote* count only as nouns: behind them a barrier, the end, a function word or a verb of position;
    before them, across at most two content words, a determiner or possessive.

    Source:
        TOSC card, section 4.4, ``phrase+context``.
    """
    words = text.words
    if text.gap(stop - 1) == "-" and stop < len(words) and words[stop] in _LIKENESS:
        return False
    if stop - start > 1 or words[start] not in ALSO_ADJECTIVES:
        return True
    ends = stop == len(words) or text.barrier(start)
    return (ends or words[stop] in _MAY_FOLLOW) and _determined(text, start)


def _determined(text: Prepared, start: int) -> bool:
    """Say whether a determiner comes before a function word, a barrier or a colour modifier, going back."""
    for back in range(1, _MOST_CONTENT_WORDS + 2):
        at = start - back
        if at < 0 or text.barrier(at):
            return False
        if text.words[at] in _DETERMINERS:
            return True
        if text.words[at] in _STOPS:
            return False
    return False


def may_be_denied(text: Prepared) -> bool:
    """Say quickly whether the caption has a word at all that could deny a mention."""
    return not _TRIGGERS.isdisjoint(text.words)


def denied(text: Prepared, start: int, stop: int) -> bool:
    """Say whether the caption says that what words ``start`` to before ``stop`` name is not there.

    Source:
        TOSC card, section 4.4, ``negation: on``, conditions (i) to (iii).
    """
    return _negated(text, start) or _said_gone(text, stop) or _said_past(text, start, stop)


def _negated(text: Prepared, start: int) -> bool:
    words = text.words
    for at in range(start - 1, max(start - 1 - _WINDOW, -1), -1):
        if text.barrier(at) or words[at] in _CONTRASTS:
            return False
        following = words[at + 1] if at + 1 < len(words) else ""
        if words[at] in _NEGATORS and not (words[at] == "not" and following in ("only", "just")):
            return True
        if words[at] == "of" and at and words[at - 1] in _ABSENCE and not text.barrier(at - 1):
            return True
    return False


def _after(text: Prepared, stop: int, n_words: int) -> tuple[str, ...]:
    """Return up to ``n_words`` words behind a mention, as far as no barrier comes."""
    n = 0
    while n < n_words and stop + n < len(text.words) and not text.barrier(stop + n - 1):
        n += 1
    return tuple(text.words[stop : stop + n])


def _said_gone(text: Prepared, stop: int) -> bool:
    after = _after(text, stop, 3)
    if len(after) < 2 or after[0] not in _BE_HAVE:
        return False
    return after[1] in _GONE or after[1:] == _NO_LONGER


def _said_past(text: Prepared, start: int, stop: int) -> bool:
    after = _after(text, stop, 3)
    if not any(after[: len(said)] == said for said in _ONCE):
        return False
    for at in range(start - 1, max(start - 1 - _WINDOW, -1), -1):
        if text.barrier(at):
            return False
        if text.words[at] == "where":
            return True
    return False
