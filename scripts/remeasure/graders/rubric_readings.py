"""From a case, its answer and a judge's lines to scores: as published, strict, and with zeros.

``published`` repeats the original: a failed request is a sentence, a judge that failed says no to everything.
``strict`` leaves out what has no whole answer or no verdict that can be read. ``zeros`` is ``strict`` where a
request that failed, or an empty answer, counts as one that states nothing.
"""

from collections.abc import Sequence

from remeasure import failing, roundtrip
from remeasure.graders.rubric_metrics import HEADLINE, IMAGES, LEVELS, NAMES
from remeasure.records import Reading, Response
from remeasure.rubrics import overlap, verdicts
from remeasure.rubrics.attribution import attribution
from remeasure.rubrics.case import Case, Overlaps
from remeasure.rubrics.hierarchy import hierarchy_of
from remeasure.rubrics.points import BUCKETS, Rubric
from remeasure.rubrics.similarity import BACKENDS
from remeasure.rubrics.verdicts import Verdicts

Scores = dict[str, float | None]
Weights = dict[str, int]
ZEROS = (
    "required_recall",
    "optional_recall",
    "full_required_coverage",
    "full_hierarchical_required_coverage",
    *(
        f"det_required_recall@{threshold}_{backend}"
        for backend in BACKENDS
        for threshold in overlap.THRESHOLDS
    ),
    *(f"det_required_meanmaxsim_{backend}" for backend in BACKENDS),
    *(f"det_hierarchical_required_recall_{backend}" for backend in BACKENDS),
)
"""What the reading ``zeros`` has besides the headline."""
NO_POINTS = "no required points"
THOUGHT = "the judge was shown thinking too"


def text_of(reply: Response | None) -> str | None:
    """Return the text of a judge's reply; null where it said nothing."""
    return None if reply is None or reply.status in ("failed", "not_sent") else reply.text


def no_reply(case: Case, reply: Response | None) -> str | None:
    """Return why a judge said nothing: a status, or the class of an answer that is none; null where it did.

    Edges:
        Nothing is the right reply about a case without points.
    """
    if reply is None or text_of(reply) is None:
        return (reply.status if reply else "not sent").replace("_", " ")
    kind = failing.kind_of(reply)
    return kind if kind in (failing.EMPTY, failing.MARKED) and case.rubric.n_lines else None


def judge_state(case: Case, reply: Response | None) -> str | None:
    """Return what is wrong with a judge's reply, whatever the answer: a verdict; null for nothing."""
    if reply is None:
        return None
    if no_reply(case, reply) is not None:
        return "judge_failed"
    if reply.status != "answered" or verdicts.strict(text_of(reply) or "", case.rubric)[0] is None:
        return "judge_unreadable"
    return None


def published(case: Case, reply: Response | None) -> Reading:
    """Return the reading of the original."""
    bits = published_bits(case, reply)
    if case.published is None or bits is None:
        return _reading("ungraded", "reader not sent", {})
    scores, weights = _all(case.published, case, bits, case.overlaps)
    scores["infer_fail_rate"] = float(roundtrip.is_marked(case.published))
    if reply is not None and (problem := no_reply(case, reply)):
        return _reading("judge_failed", f"judge {problem}: no to every point", scores, weights)
    reason = "judged" if text_of(reply) is not None else "not judged: no to every point"
    return _reading(*_verdict(scores, reason), scores, weights)


def published_bits(case: Case, reply: Response | None) -> Verdicts | None:
    """Return a judge's verdicts as the original reads them; null where it has no row of the case.

    Edges:
        Without a reply everything is a no.
    """
    if case.published is None:
        return None
    text = text_of(reply)
    return verdicts.none(case.rubric) if text is None else verdicts.published(text, case.rubric)


def strict(case: Case, reply: Response | None) -> Reading:
    """Return the reading without flaws."""
    failed = {"infer_fail_rate": float(failing.kind_of(case.response) is not None)}
    if case.strict.text is None:
        return _reading("ungraded", case.strict.problem, failed)
    bits, problem = strict_bits(case, reply)
    scores, weights = _all(case.strict.text, case, bits, case.overlaps_strict)
    scores |= failed
    if problem:
        verdict = "ungraded" if problem == THOUGHT else "judge_unreadable"
        return _reading("judge_failed" if no_reply(case, reply) else verdict, problem, scores, weights)
    return _reading(*_verdict(scores, "judged"), scores, weights)


def strict_bits(case: Case, reply: Response | None) -> tuple[Verdicts | None, str]:
    """Return a judge's verdicts, or null and why there are none that count."""
    problem, text = no_reply(case, reply), text_of(reply)
    if reply is None or text is None or problem:
        return None, f"judge {problem}"
    if reply.status != "answered":
        return None, f"the judge's reply is {reply.status.replace('_', ' ')}"
    if case.strict.thought:
        return None, THOUGHT
    return verdicts.strict(text, case.rubric)


def zeros(case: Case, found: Reading) -> Reading:
    """Return the reading ``zeros``.

    Args:
        case: the case.
        found: its strict reading.
    """
    if case.strict.text is not None:
        kept = {name: found.scores[name] for name in ZEROS}
        return Reading(verdict=found.verdict, score=found.score, reason=found.reason, scores=kept)
    silent: Overlaps = {backend: overlap.silent(case.rubric) for backend in BACKENDS}
    scores, _ = _all("", case, verdicts.none(case.rubric), silent)
    return Reading(
        verdict="not_covered" if case.rubric.required else "ungraded",
        score=scores.get(HEADLINE),
        reason=found.reason,
        scores={name: scores.get(name) for name in ZEROS},
    )


def _all(text: str, case: Case, bits: Verdicts | None, overlaps: Overlaps) -> tuple[Scores, Weights]:
    """Return all scores that are defined, and how many points those of a bucket rest on."""
    facts = case.facts
    scores: Scores = {}
    scores |= attribution(text, facts.n_images, facts.decisive, facts.supporting)
    judged, weights = _judged(bits, case.rubric) if bits else ({}, {})
    scores |= judged
    for backend, found in overlaps.items():
        if found is None:
            continue
        rates, own = overlap.scores(found, case.rubric.buckets)
        scores |= {f"{name}_{backend}": value for name, value in rates.items()}
        weights |= {f"{name}_{backend}": n for name, n in own.items()}
        recall = judged.get("required_recall")
        det = rates.get(f"det_required_recall@{overlap.HEADLINE_THRESHOLD}")
        if recall is not None and det is not None:
            scores[f"judge_vs_det_required_recall_mae_{backend}"] = abs(recall - det)
    return scores, weights


def _judged(bits: Verdicts, rubric: Rubric) -> tuple[Scores, Weights]:
    scores: Scores = {}
    weights: Weights = {}
    if bits.optional:
        scores["optional_recall"] = _mean(bits.optional)
    found = hierarchy_of(bits.required, rubric.buckets)
    if found is None:
        return scores, weights
    recall = _mean(bits.required)
    levels = (found.raw[0], found.raw[1], found.gated[1], found.raw[2], found.gated[2])
    scores |= {
        HEADLINE: found.recall,
        "required_recall": recall,
        "required_contradiction_rate": _mean(bits.contradicted),
        "full_required_coverage": float(recall >= 1),
        "full_hierarchical_required_coverage": float(found.recall >= 1),
        "hierarchical_required_recall_drop": recall - found.recall,
        "hier_visual_gate_pass_rate": found.visual_gate,
        "hier_cross_gate_pass_rate": found.cross_gate,
    }
    scores |= {name: value for (name, _), value in zip(LEVELS, levels, strict=True)}
    for bucket in BUCKETS:
        own = [hit for hit, name in zip(bits.required, rubric.buckets, strict=True) if name == bucket]
        if own:
            scores[f"required_recall_{bucket}"] = _mean(own)
            weights[f"required_recall_{bucket}"] = len(own)
    return scores, weights


def _mean(bits: Sequence[int]) -> float:
    return sum(bits) / len(bits)


def _verdict(scores: Scores, reason: str) -> tuple[str, str]:
    score = scores.get(HEADLINE)
    if score is None:
        return "ungraded", NO_POINTS
    return "covered" if score >= 1 else "partly_covered" if score > 0 else "not_covered", reason


def _reading(verdict: str, reason: str, scores: Scores, weights: Weights | None = None) -> Reading:
    return Reading(
        verdict=verdict,
        score=scores.get(HEADLINE),
        reason=reason,
        scores={name: scores.get(name) for name in NAMES if name != HEADLINE},
        weights=weights or {},
    )


def n_images_scored(reading: Reading) -> dict[str, int]:
    """Return what the original counts beside the rates of images: the cases that they rest on."""
    coverage, select = IMAGES[0].name, IMAGES[4].name
    return {
        "n_image_attribution_scored": int(reading.scores[coverage] is not None),
        "n_image_select_scored_distractor_subset": int(reading.scores[select] is not None),
    }
