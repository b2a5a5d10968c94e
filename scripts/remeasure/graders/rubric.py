"""Evidence points: which an answer states (a judge), what it has in common with them, which images it names.

Readings: ``published`` repeats the original, ``strict`` leaves out what has no whole answer or no verdict
that can be read, ``zeros`` is ``strict`` with 0 where there is no answer.
"""

import functools
import importlib.metadata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from remeasure import yaml_files
from remeasure.errors import RemeasureError
from remeasure.graders import rubric_readings as readings
from remeasure.graders.base import Unit
from remeasure.graders.rubric_metrics import HEADLINE, METRICS
from remeasure.records import Graded, Item, Metric, Number, Reading, Response
from remeasure.rubrics import overlap, verdicts
from remeasure.rubrics.case import Case, case_of, texts_of
from remeasure.rubrics.showing import shown
from remeasure.rubrics.similarity import (
    EMBEDDING,
    LEXICAL,
    MAX_TOKENS,
    Lexical,
    Similar,
    open_embedding,
)
from remeasure.rubrics.verdicts import Verdicts
from remeasure.text import strip_thinking

BEYOND = f"sentences_beyond_{overlap.MAX_SENTENCES}"
_BLANK = "(blank)"
_CLOSE = 1e-9
_LONG = 20_000
"""Characters of an answer whose sentences fill batches of their own."""


class File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that the grader reads."""

    path: str
    sha256: str | None
    """Null where nobody says what it must be."""


class Files(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``files`` of the bench: the sentence model."""

    similarity_model: File
    similarity_tokenizer: File


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the grader."""

    files: Files


@dataclass(frozen=True)
class Foreseeing:
    """Grades cases, and is shown some of them together before: vectors of many texts are faster."""

    grade: Callable[[Unit], Graded]
    look: Callable[[Iterable[str]], None]

    def __call__(self, unit: Unit) -> Graded:
        """Grade one case."""
        return self.grade(unit)

    def foresee(self, units: Sequence[Unit]) -> None:
        """Look at the texts of cases that are graded next; a very long answer waits for its turn."""
        self.look(
            text
            for unit in units
            if len(unit.responses[0].text or "") <= _LONG
            for text in texts_of(unit.items[0], unit.responses[0])
        )


class RubricGrader:
    """Gives a case its recall of evidence points, with and without a judge."""

    name = "judge_rubric"
    version = 1
    judged = True
    compares: ClassVar[bool] = False
    metrics = METRICS
    headline = HEADLINE
    packages: ClassVar[tuple[str, ...]] = ("onnxruntime", "scikit-learn", "scipy", "tokenizers")
    averaged: ClassVar[tuple[str, ...]] = ()
    needs_form: ClassVar[bool] = True
    questions: ClassVar[tuple[str, ...]] = ()

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}"

    def method(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return backends and thresholds; files are named, not opened."""
        files = _options(options).files
        return {
            "similarity_lexical": f"tf-idf, words and pairs, stop words of scikit-learn {_version()}",
            "similarity_embedding": f"{Path(files.similarity_model.path).name}, mean, {MAX_TOKENS} tokens",
            "similarity_model_sha256": files.similarity_model.sha256 or "any",
            "similarity_tokenizer_sha256": files.similarity_tokenizer.sha256 or "any",
            "sentences": f"the first {overlap.MAX_SENTENCES} of an answer; more are counted",
            "thresholds": ", ".join(map(str, overlap.THRESHOLDS)),
            "gates": f"judge: bits; det: cosine of {overlap.HEADLINE_THRESHOLD} or more",
            "judge_lines": "published: any with yes or no, the rest is no; strict: exactly as asked",
        }

    def unit_of(self, item: Item) -> str:
        """Return the case: each is graded alone."""
        return item.item_id

    def begin(self, options: Mapping[str, Any]) -> Callable[[Unit], Graded]:
        """Open the sentence model; return the function that grades cases.

        Raises:
            RemeasureError: an option, a file or a package is missing, or a file is another one.
        """
        files = _options(options).files
        model, tokenizer = (Path(file.path) for file in (files.similarity_model, files.similarity_tokenizer))
        wanted = {model: files.similarity_model.sha256, tokenizer: files.similarity_tokenizer.sha256}
        vectors = open_embedding(model, tokenizer, wanted)
        return Foreseeing(
            functools.partial(self.grade, backends={LEXICAL: Lexical(), EMBEDDING: vectors}), vectors.foresee
        )

    def check(self, metrics: Mapping[str, Metric]) -> None:
        """Check that gates only take away, and that the drop is the difference of the two recalls."""
        for name in ("published", "strict"):
            found = {metric: _number(number, name) for metric, number in metrics.items()}
            for level in ("hier_level2_cross_recall", "hier_level3_diag_recall"):
                raw, gated = found.get(f"{level}_raw"), found.get(f"{level}_gated")
                if raw and gated and raw.n:
                    assert (gated.value or 0) <= (raw.value or 0) + _CLOSE, (name, level, raw, gated)
            flat, drop = found.get("required_recall"), found.get("hierarchical_required_recall_drop")
            if flat and drop and drop.n:
                parts = (flat.value or 0) - (found[HEADLINE].value or 0)
                assert abs(parts - (drop.value or 0)) < _CLOSE, (name, flat, drop)

    def grade(self, unit: Unit, *, backends: Mapping[str, Similar]) -> Graded:
        """Grade one case.

        Args:
            unit: the case, its answer, the judge's lines.
            backends: by name how alike texts are.
        """
        (item,), (response,), (reply,) = unit.items, unit.responses, unit.judge
        case = case_of(item, response, backends)
        published, strict = readings.published(case, reply), readings.strict(case, reply)
        bits = readings.published_bits(case, reply)
        bits_strict = readings.strict_bits(case, reply)[0] if case.strict.text is not None else None
        task = case.facts.task_type
        return Graded(
            item_id=item.item_id,
            group=item.group,
            status=response.status,
            answer=None if response.text is None else strip_thinking(response.text)[0],
            grader=self.label,
            judge_key=reply.key if reply else None,
            judge_status=reply.status if reply else None,
            published=published,
            strict=strict,
            also={"zeros": readings.zeros(case, strict)},
            strata={} if task is None else {"task_type": task.strip() or _BLANK},
            counts=_counts(case, reply, bits, published) | _unseen(case, reply, strict),
            shown=shown(case, bits, bits_strict),
        )


def _counts(case: Case, reply: Response | None, bits: Verdicts | None, found: Reading) -> dict[str, int]:
    """Return what is counted beside the scores: sizes, and what went wrong without being seen in them."""
    rubric, text = case.rubric, readings.text_of(reply)
    n_lines = rubric.n_lines if text is None else verdicts.n_lines(text)
    has_row = case.published is not None
    return {
        "points": len(rubric.required) + len(rubric.optional),
        "required_points": len(rubric.required),
        "n_judged_required": int(has_row and bool(rubric.required)),
        "without_required_points": int(not rubric.required),
        "contradictions": sum(bits.contradicted) if bits else 0,
        "covered_and_contradicted": bits.n_both if bits else 0,
        "judge_lines_too_few": int(n_lines < rubric.n_lines),
        "judge_lines_too_many": int(n_lines > rubric.n_lines),
        "judged_with_thinking": int(text is not None and case.strict.thought),
        "answers_without_sentences": int(has_row and not case.said),
        BEYOND: case.n_beyond,
        f"{BEYOND}_strict": case.n_beyond_strict,
        "lexical_without_words": int(LEXICAL in case.overlaps and case.overlaps[LEXICAL] is None),
        **readings.n_images_scored(found),
    }


def _unseen(case: Case, reply: Response | None, strict: Reading) -> dict[str, int]:
    """Count a reply that cannot be read where no verdict says so: what it is about is left out."""
    state = readings.judge_state(case, reply)
    return {"judge_unreadable": int(state == "judge_unreadable" != strict.verdict)}


def _options(options: Mapping[str, Any]) -> Options:
    return yaml_files.convert(dict(options), Options, Path("options of grader judge_rubric"))


def _version() -> str:
    try:
        return importlib.metadata.version("scikit-learn")
    except importlib.metadata.PackageNotFoundError:
        raise RemeasureError("scikit-learn is not installed; run make setup") from None


def _number(metric: Metric, reading: str) -> Number:
    return metric.published if reading == "published" else metric.strict


JUDGE_RUBRIC = RubricGrader()
