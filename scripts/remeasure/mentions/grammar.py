"""The two rules that look around a mention: context and negation."""

from remeasure.mentions.preparing import BARRIER

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
_MAY_FOLLOW = _FUNCTION_WORDS | _VERBS_OF_POSITION | {BARRIER}
_STOPS = _FUNCTION_WORDS | _COLOUR_MODIFIERS | {BARRIER}
LIKENESS = frozenset("shaped themed patterned sized".split())
"""A mention that a hyphen joins to one of these names a likeness."""
ALSO_ADJECTIVES = frozenset(["orange", "remote"])
"""Forms that are looked at more closely; their plurals always count."""
_MOST_CONTENT_WORDS = 2

_NEGATORS = frozenset("no not without never neither nor".split())
_NOT_ONLY = ("only", "just")
_ABSENCE = frozenset("absence lack free devoid".split())
_CONTRASTS = frozenset("but though although while whereas however yet except instead".split())
_BETWEEN = _CONTRASTS | {BARRIER}
_BE_HAVE = frozenset("be am is are was were been being have has had having".split())
_GONE = frozenset("missing gone absent".split())
_ONCE = {said[0]: said for said in (["used", "to", "be"], ["once", "was"], ["had", "been"])}
_WINDOW = 3
_TRIGGERS = _NEGATORS | _ABSENCE | _GONE | {"where"}


def counts_in_context(tokens: list[str], start: int, stop: int) -> bool:
    """Say whether tokens ``start`` to before ``stop`` are a noun; only *orange* and *remote* may not be.

    They are if behind them comes a barrier, the end, a function word or a verb of position, and before them,
    across at most two content words, a determiner or possessive.

    Source:
        TOSC card, section 4.4, ``phrase+context``.
    """
    if stop - start > 1 or tokens[start] not in ALSO_ADJECTIVES:
        return True
    return (stop == len(tokens) or tokens[stop] in _MAY_FOLLOW) and _determined(tokens, start)


def _determined(tokens: list[str], start: int) -> bool:
    """Say whether a determiner comes before a function word, a barrier or a colour modifier, going back."""
    for token in reversed(tokens[max(start - _MOST_CONTENT_WORDS - 1, 0) : start]):
        if token in _DETERMINERS:
            return True
        if token in _STOPS:
            return False
    return False


def may_be_denied(tokens: list[str]) -> bool:
    """Say quickly whether a caption has a word at all that could deny a mention."""
    return not _TRIGGERS.isdisjoint(tokens)


def denied(tokens: list[str], start: int, stop: int) -> bool:
    """Say whether the caption says that what tokens ``start`` to before ``stop`` name is not there.

    Source:
        TOSC card, section 4.4, ``negation: on``, conditions (i) to (iii).
    """
    return _negated(tokens, start) or _said_gone(tokens, stop) or _said_past(tokens, start, stop)


def _before(start: int) -> range:
    """Return the places that negation looks at, nearest first."""
    return range(start - 1, max(start - _WINDOW, 0) - 1, -1)


def _negated(tokens: list[str], start: int) -> bool:
    for at in _before(start):
        token = tokens[at]
        if token in _BETWEEN:
            return False
        if token in _NEGATORS and not (token == "not" and tokens[at + 1] in _NOT_ONLY):
            return True
        if token == "of" and at and tokens[at - 1] in _ABSENCE:
            return True
    return False


def _said_gone(tokens: list[str], stop: int) -> bool:
    after = tokens[stop : stop + 3]
    if len(after) < 2 or after[0] not in _BE_HAVE:
        return False
    return after[1] in _GONE or after[1:] == ["no", "longer"]


def _said_past(tokens: list[str], start: int, stop: int) -> bool:
    said = _ONCE.get(tokens[stop]) if stop < len(tokens) else None
    if said is None or tokens[stop : stop + len(said)] != said:
        return False
    for at in _before(start):
        if tokens[at] in (BARRIER, "where"):
            return tokens[at] == "where"
    return False
