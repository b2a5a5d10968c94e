"""From three captions of a triplet to its four bits."""

from dataclasses import dataclass
from functools import cached_property

from remeasure.mentions.matching import Found, Matcher, Mention
from remeasure.mentions.objects import Target
from remeasure.mentions.preparing import Prepared
from remeasure.mentions.rates import Bits

Caption = str | Prepared
STATES = ("origin", "removed", "replaced")


@dataclass(frozen=True)
class Detected:
    """What the captions of a triplet mention."""

    o: Target
    r: Target
    found: tuple[Found, Found, Found]
    """Origin, removed, replaced."""
    negation: bool
    """Whether mentions that the caption denies are left out."""

    @cached_property
    def bits(self) -> Bits:
        """The four bits of the triplet."""
        origin, removed, replaced = (_labels(found, self.negation) for found in self.found)
        o, r = self.o.label, self.r.label
        return Bits(o in origin, o in removed, o in replaced, r in replaced)

    def marks(self) -> list[list[Mention]]:
        """Return where each caption mentions the two objects: those mentions that the bits rest on."""
        wanted = {self.o.label, self.r.label}
        marks = []
        for found in self.found:
            denied = set(found.denied()) if self.negation else ()
            hits = [hit for hit in found.hits if hit.label in wanted and hit not in denied]
            marks.append(Found(found.text, hits).mentions())
        return marks

    def n_mentions(self) -> tuple[int, int]:
        """Return how many mentions of any object the captions have, and how many negation takes back."""
        return sum(len(found.hits) for found in self.found), sum(len(found.denied()) for found in self.found)

    def head_match(self) -> dict[str, bool]:
        """Return by bit whether it is 0 and would be 1 if the last word of the name were enough.

        Only bits of names outside the table and of several words are in it.

        Source:
            TOSC card, section 4.5.
        """
        origin, removed, replaced = self.found
        found = (origin, removed, replaced, replaced)
        targets = (self.o, self.o, self.o, self.r)
        return {
            bit: not mentioned and not target.heads.isdisjoint(caption.text.words)
            for bit, caption, target, mentioned in zip("abcd", found, targets, self.bits, strict=True)
            if target.heads
        }


def _labels(found: Found, negation: bool) -> set[str]:
    if not negation:
        return found.labels()
    denied = set(found.denied())
    return {hit.label for hit in found.hits if hit not in denied}


def detect(
    captions: tuple[Caption, Caption, Caption], o: Target, r: Target, matcher: Matcher, *, negation: bool
) -> Detected:
    """Look through the captions of a triplet.

    Forms of the lexicon are looked for in all three, own forms of the original object too, own forms of the
    replacing object in the last one only.

    Args:
        captions: origin, removed, replaced; one that is missing is the empty string. Prepared ones serve
            several matchers.
        o: the original object.
        r: the object that replaces it.
        matcher: how mentions are found.
        negation: whether mentions that the caption denies are left out.

    Source:
        TOSC card, section 4.5.
    """
    with_o = matcher.with_own(o.entries())
    with_both = with_o.with_own(r.entries())
    origin, removed, replaced = captions
    found = (with_o.read(origin), with_o.read(removed), with_both.read(replaced))
    return Detected(o, r, found, negation)
