"""Encoders: settings and the models they name. Texts, tile texts, lines and pictures become unit vectors."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeVar

import msgspec

from remeasure.errors import RemeasureError, did_you_mean

T = TypeVar("T")


class EncoderSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One encoder of a run: which unit of the corpus it embeds with which model."""

    name: str = "encoder"
    """Name in the configuration, for messages."""
    unit: Literal["tiles", "passages", "lines", "pictures"]
    model: str
    backend: str = "onnx"
    """What runs the model (``BACKENDS``)."""
    max_tokens: int | None = None
    """Text encoders: longer texts are cut at the end."""
    size_px: int | None = None
    """Photo encoders: side of the square that every picture is resized to."""
    trained: bool = False
    """Whether a trained adapter belongs to the encoder."""


class TrainingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an adapter is trained on top of a base encoder."""

    study: str
    """Study whose train and dev questions are used."""
    base: str
    """Encoder whose tile vectors are the documents."""
    base_encoder: EncoderSettings
    rank: int
    temperature: float
    learning_rate: float
    max_steps: int
    patience: int
    """Stop after so many steps without a better dev value."""
    seed: int


class TextModel(NamedTuple):
    """What is fixed by how a text model was trained."""

    query_prefix: str
    position_limit: int


TEXT_MODELS = {
    "bge-small-en-v1.5": TextModel("Represent this sentence for searching relevant passages: ", 512),
}
PHOTO_MODELS = ("efficientnet-lite0",)


class Backend(NamedTuple):
    """A way to run encoders."""

    is_written: bool
    """Whether this version can; one that cannot may be planned with."""
    sees_pixels: bool
    """Whether it embeds a tile as it looks, and a question with its image; else it needs OCR text."""


BACKENDS = {
    "onnx": Backend(is_written=True, sees_pixels=False),
    "qwen3-vl": Backend(is_written=False, sees_pixels=True),
}


def unwritten(name: str, backend: str) -> str | None:
    """Return why an encoder cannot run, or null where it can."""
    if BACKENDS[backend].is_written:
        return None
    there = ", ".join(known for known, found in BACKENDS.items() if found.is_written)
    return (
        f"encoders.{name}.backend: {backend} is not written yet in this version (there is: {there}); "
        "its steps can be planned, not run"
    )


def check_backend(settings: EncoderSettings) -> None:
    """Check that an encoder can run at all; called before anything is read.

    Raises:
        RemeasureError: its backend is unknown, or not written yet.
    """
    if settings.backend not in BACKENDS:
        raise RemeasureError(
            f"encoder {settings.name}: backend {settings.backend!r} is not known"
            f"{did_you_mean(settings.backend, BACKENDS)}; known: {', '.join(BACKENDS)}"
        )
    problem = unwritten(settings.name, settings.backend)
    if problem:
        raise RemeasureError(problem)


def check_settings(settings: EncoderSettings) -> None:
    """Check that unit, model and limits belong together.

    Raises:
        RemeasureError: an unknown model, or a limit that is missing, out of range or of the other kind.
    """
    photo = settings.unit == "pictures"
    known = PHOTO_MODELS if photo else tuple(TEXT_MODELS)
    if settings.model not in known:
        raise RemeasureError(
            f"encoder {settings.name}: model {settings.model!r} is not known ({', '.join(known)})"
            f"{did_you_mean(settings.model, known)}; correct it in the configuration of the run"
        )
    name, value, other = (
        ("size_px", settings.size_px, settings.max_tokens)
        if photo
        else ("max_tokens", settings.max_tokens, settings.size_px)
    )
    low, high = (32, 4096) if photo else (8, TEXT_MODELS[settings.model].position_limit)
    if value is None or other is not None or not low <= value <= high:
        raise RemeasureError(
            f"encoder {settings.name}: needs {name} from {low} to {high} and no other limit, found "
            f"max_tokens {settings.max_tokens} and size_px {settings.size_px}; correct the configuration"
        )
    if photo and settings.trained:
        raise RemeasureError(
            f"encoder {settings.name}: adapters are for text encoders; remove training from the configuration"
        )


def check_training(settings: TrainingSettings) -> None:
    """Check the ranges of a training's numbers.

    Raises:
        RemeasureError: names all that are out of range.
    """
    low = {"rank": 1, "max_steps": 1, "patience": 1, "seed": 0, "temperature": 0.005, "learning_rate": 1e-8}
    wrong = [
        f"{name} {getattr(settings, name)} (from {least})"
        for name, least in low.items()
        if not getattr(settings, name) >= least
    ]
    if wrong:
        raise RemeasureError(f"training: out of range: {', '.join(wrong)}; correct the configuration")


def batched(things: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield ``size`` things at a time, the last time perhaps fewer (in Python 3.12 ``itertools``)."""
    things = iter(things)
    while block := tuple(itertools.islice(things, size)):
        yield block
