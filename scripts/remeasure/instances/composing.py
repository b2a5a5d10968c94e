"""Sets of photographs composed by a rule: what a run says of them, and the camera that takes them.

Everything that is random follows from the seed and the name of a photograph, so a set is the same whatever
the others are, and one seed gives the same bytes each time. No source of one set is a source of another.
"""

import hashlib
import io
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Literal, TypeVar

import msgspec
import numpy as np
from PIL import Image

from remeasure import scenes
from remeasure.errors import RemeasureError
from remeasure.instances import warping

T = TypeVar("T")
Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Form = Literal["exif", "truncated", "stub", "cmyk", "grey", "grey16", "palette", "strip"]


class _Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class BenchmarkScenes(_Settings):
    """Scenes of a benchmark; ``config/scenes.yaml`` says what each field does."""

    scenes: dict[str, Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=2)]]
    others: tuple[str, ...] = ()
    two_queries: tuple[str, ...] = ()
    without_easy: tuple[str, ...] = ()
    without_hard: tuple[str, ...] = ()
    odd: dict[str, Form] = {}
    odd_query: dict[str, Form] = {}
    outside: tuple[str, ...] = ()

    def files(self) -> list[str]:
        """Return the files of the package that it is made from."""
        return [*(file for files in self.scenes.values() for file in files), *self.others]


class TrainingScenes(_Settings):
    """Classes to train on."""

    panoramas: tuple[str, ...]
    directions: Positive
    field_of_view_degrees: tuple[float, float]
    turn_degrees: float
    photos: dict[str, str]
    n_photos: tuple[Positive, Positive]
    small: tuple[Positive, ...] = ()
    unlisted: Count = 0
    missing: Count = 0
    odd: tuple[Form, ...] = ()
    archives: Positive = 1
    categories: dict[str, str] = {}


class ViewScenes(_Settings):
    """Distractors."""

    archives: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1)]
    panoramas: tuple[str, ...]
    photos: tuple[str, ...]
    photo_share: Annotated[float, msgspec.Meta(ge=0, le=1)]
    field_of_view_degrees: tuple[float, float]
    pitch_degrees: tuple[float, float]
    size_px: tuple[Positive, Positive]
    odd: tuple[Form, ...] = ()


class Composition(_Settings):
    """All sets."""

    seed: str
    side_px: Positive
    jpeg_quality: Annotated[int, msgspec.Meta(ge=1, le=100)]
    benchmarks: dict[str, BenchmarkScenes]
    training: TrainingScenes
    views: ViewScenes

    def panoramas(self) -> list[str]:
        """Return the panoramas that are needed."""
        return sorted({*self.training.panoramas, *self.views.panoramas})

    def files(self) -> list[str]:
        """Return the files of the package of photographs that are needed."""
        named = [file for found in self.benchmarks.values() for file in found.files()]
        return sorted({*named, *self.training.photos.values(), *self.views.photos})

    def sources(self) -> dict[str, list[str]]:
        """Return what each set is made from: files of the package, and panoramas."""
        return {name: sorted(found.files()) for name, found in self.benchmarks.items()} | {
            "training": sorted([*self.training.photos.values(), *self.training.panoramas]),
            "views": sorted([*self.views.photos, *self.views.panoramas]),
        }


def read_settings(text: str) -> Composition:
    """Read settings from JSON and check what their fields say together.

    Raises:
        RemeasureError: a field is missing, unknown or out of range, a scene is not defined, or a source
            serves two sets.
    """
    place = "settings of composed photographs"
    try:
        found = msgspec.json.decode(text, type=Composition, strict=False)
    except msgspec.MsgspecError as error:
        raise RemeasureError(f"{place}: {error}; correct config/scenes.yaml") from None
    used: dict[str, str] = {}
    for name, files in found.sources().items():
        for file in files:
            if used.setdefault(file, name) != name:
                raise RemeasureError(
                    f"{place}: {file} is in {used[file]} and in {name}; no scene may be in two sets: "
                    "take it out of one"
                )
    for name, bench in found.benchmarks.items():
        named = {*bench.two_queries, *bench.without_easy, *bench.without_hard, *bench.odd, *bench.odd_query}
        if unknown := sorted((named | {*bench.outside}) - {*bench.scenes}):
            raise RemeasureError(
                f"{place}: benchmarks.{name}: {unknown[0]!r} is none of its scenes; correct it"
            )
    return found


def decoded(data: bytes, name: str) -> Image.Image:
    """Return a source photograph as RGB, transparent parts white.

    Raises:
        RemeasureError: it cannot be decoded.
    """
    try:
        picture = Image.open(io.BytesIO(data))
        if picture.mode in ("RGBA", "LA", "P"):
            picture = picture.convert("RGBA")
            ground = Image.new("RGBA", picture.size, "white")
            picture = Image.alpha_composite(ground, picture)
        return picture.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise RemeasureError(f"{name}: cannot be decoded ({error}); fetch its package again") from None


class Photographer:
    """Takes the photographs of all sets.

    Args:
        settings: which.
        photos: encoded photograph of the package by file.
        panoramas: encoded panorama by name.
    """

    def __init__(
        self, settings: Composition, photos: Mapping[str, bytes], panoramas: Mapping[str, bytes]
    ) -> None:
        self._settings = settings
        # Twice the final size: crops of a part still have pixels to show.
        self._photos = {
            name: warping.fitted(decoded(data, name), 2 * settings.side_px) for name, data in photos.items()
        }
        self._panoramas = {name: np.asarray(decoded(data, name)) for name, data in panoramas.items()}

    def photo(self, file: str) -> Image.Image:
        """Return a photograph of the package."""
        return self._photos[file]

    def view(
        self, panorama: str, size_px: tuple[int, int], fov: float, yaw: float, pitch: float
    ) -> Image.Image:
        """Return what a camera in the middle of a panorama sees."""
        return Image.fromarray(scenes.view(self._panoramas[panorama], size_px, fov, yaw, pitch))

    def dice(self, name: str) -> random.Random:
        """Return the dice of one photograph."""
        return random.Random(f"{self._settings.seed}/{name}")

    def encoded(self, picture: Image.Image, form: str | None = None, quality: int | None = None) -> bytes:
        """Return a photograph in its final size as the bytes of a file."""
        picture = warping.fitted(picture, self._settings.side_px)
        quality = quality or self._settings.jpeg_quality
        return warping.odd_form(picture, form, quality) if form else warping.jpeg(picture, quality)


def short_id(*words: object) -> str:
    """Return 16 hexadecimal digits that follow from some words, as photographs of GLDv2 are called."""
    return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()[:16]


def taken(photos: Sequence[T], take: Callable[[T], bytes], threads: int) -> Iterator[bytes]:
    """Yield the bytes of photographs in their order, several being taken at once."""
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(take, photos)
