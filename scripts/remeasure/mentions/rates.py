"""The nine rates of a triplet and of many, from four bits each."""

import math
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple


class Bits(NamedTuple):
    """Which of its objects the three captions of a triplet mention."""

    a: bool
    """The caption of the original image mentions the original object."""
    b: bool
    """That of the image with the object removed still mentions it."""
    c: bool
    """That of the image with the object replaced still mentions it."""
    d: bool
    """That of the image with the object replaced mentions the new one."""


class Metric(NamedTuple):
    """A column of the table."""

    name: str
    """In files."""
    title: str
    better: Literal["high", "low"]
    meaning: str


METRICS = (
    Metric("opa", "OPA", "high", "the object is mentioned where it is: a"),
    Metric("rca", "RCA", "high", "it is not mentioned where it was removed: 1 - b"),
    Metric("rua", "RUA", "high", "where it was replaced, the new one is mentioned and it is not: d (1 - c)"),
    Metric("tosc", "TOSC", "high", "all three are right: a (1 - b) d (1 - c)"),
    Metric("oldpersist_rem", "OldPersist_rem", "low", "it is mentioned although it was removed: b"),
    Metric("oldpersist_rep", "OldPersist_rep", "low", "it is mentioned although it was replaced: c"),
    Metric("repfail", "RepFail", "low", "the new one is not mentioned: 1 - d"),
    Metric("cc", "CC", "low", "neither is mentioned where it was replaced: (1 - c) (1 - d)"),
    Metric("mixconf", "MixConf", "low", "both are mentioned where it was replaced: c d"),
)
"""The published columns, in their order.

Source:
    TOSC card, section 3.
"""
CONDITIONAL = (
    Metric("rca_given_opa", "RCA | a=1", "high", "RCA of the triplets whose object was mentioned at first"),
    Metric("rua_given_opa", "RUA | a=1", "high", "RUA of the triplets whose object was mentioned at first"),
)
"""Not published: a model that never mentions the object has an RCA of 1."""
HEADLINE = "tosc"
_TOLERANCE = 1e-9


def scores(bits: Bits) -> dict[str, float | None]:
    """Return every metric of one triplet, 0 or 1; None where a condition is not met."""
    a, b, c, d = map(int, bits)
    rca, rua = 1 - b, d * (1 - c)
    values: dict[str, float | None] = {
        "opa": a,
        "rca": rca,
        "rua": rua,
        "tosc": a * rca * rua,
        "oldpersist_rem": b,
        "oldpersist_rep": c,
        "repfail": 1 - d,
        "cc": (1 - c) * (1 - d),
        "mixconf": c * d,
        "rca_given_opa": rca if a else None,
        "rua_given_opa": rua if a else None,
    }
    return {name: None if value is None else float(value) for name, value in values.items()}


class Rate(NamedTuple):
    """A mean with what it rests on."""

    value: float | None
    """Share, 0 to 1; None for no triplets."""
    n: int


def rates(triplets: Iterable[Bits]) -> dict[str, Rate]:
    """Return every metric of many triplets, identities checked.

    Edges:
        No triplets, or none that meets a condition: value None with n = 0.
    """
    sums = {metric.name: 0.0 for metric in (*METRICS, *CONDITIONAL)}
    counts = dict.fromkeys(sums, 0)
    old_only = 0
    for bits in triplets:
        old_only += bits.c and not bits.d
        for name, value in scores(bits).items():
            if value is not None:
                sums[name] += value
                counts[name] += 1
    found = {name: Rate(sums[name] / n if n else None, n) for name, n in counts.items()}
    n = counts[HEADLINE]
    if n:
        check_identities({m.name: found[m.name].value for m in METRICS}, old_only / n)
    return found


def check_identities(means: Mapping[str, float], old_only: float | None = None) -> None:
    """Check that the nine means of the same triplets fit together.

    Args:
        means: the nine metrics, shares from 0 to 1, all over the same triplets.
        old_only: mean of c (1 - d); None takes what RepFail and CC leave for it.

    Raises:
        AssertionError: they do not, so they were computed wrongly or over different triplets.

    Source:
        TOSC card, section 3.1.
    """
    m = means
    rest = m["repfail"] - m["cc"] if old_only is None else old_only
    equal = {
        "OldPersist_rem = 1 - RCA": (m["oldpersist_rem"], 1 - m["rca"]),
        "RUA = 1 - OldPersist_rep - CC": (m["rua"], 1 - m["oldpersist_rep"] - m["cc"]),
        "RUA + CC + MixConf + mean(c (1 - d)) = 1": (m["rua"] + m["cc"] + m["mixconf"] + rest, 1.0),
        "RepFail = CC + mean(c (1 - d))": (m["repfail"], m["cc"] + rest),
        "OldPersist_rep = MixConf + mean(c (1 - d))": (m["oldpersist_rep"], m["mixconf"] + rest),
    }
    for identity, (left, right) in equal.items():
        if not math.isclose(left, right, rel_tol=0, abs_tol=_TOLERANCE):
            raise AssertionError(f"{identity} does not hold: {left!r} against {right!r} in {dict(m)}")
    least = min(m["opa"], m["rca"], m["rua"])
    if m["tosc"] > least + _TOLERANCE:
        raise AssertionError(f"TOSC <= min(OPA, RCA, RUA) does not hold: {m['tosc']!r} > {least!r}")
