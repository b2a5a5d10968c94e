"""Sets of photographs composed by a rule: benchmarks with ground truth, classes to train on, distractors.

Everything that is random follows from the seed and the name of a photograph, so a set is the same whatever the
others are, and one seed gives the same bytes each time. No source of one set is a source of another.
"""

import hashlib
import io
import random
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec
import numpy as np
from PIL import Image

from remeasure import scenes
from remeasure.errors import RemeasureError
from remeasure.instances import warping

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

    n: Positive
    archives: Positive
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
        RemeasureError: a field is missing, unknown or out of range, a scene is not defined, or a source serves
            two sets.
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
                    f"{place}: {file} is in {used[file]} and in {name}; no scene may be in two sets: take it out of one"
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
            name: warping.fitted(decoded(data, name), 3 * settings.side_px) for name, data in photos.items()
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


# -- benchmarks --------------------------------------------------------------------------------------------


class Benchmark(msgspec.Struct):
    """What a benchmark consists of while it is made."""

    photos: dict[str, bytes] = {}
    """Bytes by stem, of queries and gallery."""
    scene_of: dict[str, str] = {}
    """Scene by stem; of others the file."""
    queries: dict[str, tuple[float, float, float, float]] = {}
    """Box by stem."""
    roles: dict[str, dict[str, list[str]]] = {}
    """Scene to stems that are ``easy``, ``hard`` and ``junk``."""

    def labels(self, dataset: str, source_sha256: str) -> dict:
        """Return the ground truth in the one open form: rows of the gallery by name."""
        gallery = sorted(set(self.photos) - set(self.queries))
        row_of = {stem: row for row, stem in enumerate(gallery)}
        gnd = []
        for stem, box in self.queries.items():
            roles = self.roles[self.scene_of[stem]]
            rows = {role: sorted(row_of[name] for name in names) for role, names in roles.items()}
            gnd.append({"bbx": list(box), **rows})
        return {
            "schema": 1,
            "dataset": dataset,
            "source_sha256": source_sha256,
            "imlist": gallery,
            "qimlist": list(self.queries),
            "gnd": gnd,
        }


def benchmark(name: str, camera: Photographer, settings: Composition) -> Benchmark:
    """Return the photographs and roles of one benchmark."""
    found, bench = settings.benchmarks[name], Benchmark()
    for scene in found.scenes:
        _add_queries(bench, name, scene, camera, settings)
        _add_gallery(bench, name, scene, camera, settings)
    for number, file in enumerate(found.others, start=1):
        for view in range(2):
            stem = f"other_{2 * number + view - 1:06d}"
            picture = camera.photo(file)
            picture = warping.MILD.of(picture, camera.dice(f"{name}/{stem}")) if view else picture
            bench.photos[stem], bench.scene_of[stem] = camera.encoded(picture), file
    # Nothing asks for these two, but whatever describes a gallery meets them.
    for stem, form in (("other_000901", "strip"), ("other_000902", "stub")):
        file = found.others[0] if found.others else next(iter(found.scenes.values()))[0]
        bench.photos[stem], bench.scene_of[stem] = camera.encoded(camera.photo(file), form), file
    return bench


def _add_queries(
    bench: Benchmark, name: str, scene: str, camera: Photographer, settings: Composition
) -> None:
    """Add one or two queries: the first photograph, and the same once more from aside."""
    found = settings.benchmarks[name]
    picture = camera.photo(found.scenes[scene][0])
    for number in range(1, 2 + (scene in found.two_queries)):
        stem = f"{scene}_{number:06d}"
        dice = camera.dice(f"{name}/{stem}")
        if number == 2:
            picture = warping.MILD.of(picture, dice)
        shown = warping.fitted(picture, settings.side_px)
        bench.photos[stem] = camera.encoded(shown, found.odd_query.get(scene) if number == 1 else None)
        bench.scene_of[stem] = scene
        bench.queries[stem] = _box(shown.size, dice, outside=scene in found.outside)


def _box(
    size_px: tuple[int, int], dice: random.Random, *, outside: bool
) -> tuple[float, float, float, float]:
    """Return a box in the middle of a photograph, with fractions of pixels as in published ground truth."""
    width, height = size_px
    left, right = -3.2 if outside else dice.uniform(0.04, 0.16) * width, dice.uniform(0.84, 0.96) * width
    top, bottom = dice.uniform(0.04, 0.16) * height, dice.uniform(0.84, 0.96) * height
    return (round(left, 1), round(top, 1), round(right, 1), round(bottom, 1))


def _add_gallery(
    bench: Benchmark, name: str, scene: str, camera: Photographer, settings: Composition
) -> None:
    """Add what is to be found: plain views, views that are hard to recognise, and parts that show too little."""
    found = settings.benchmarks[name]
    files = found.scenes[scene]
    partner = camera.photo(files[-1])
    pair = len(files) == 2
    names = (f"{scene}_{number:06d}" for number in range(3, 100))
    roles: dict[str, list[str]] = {"easy": [], "hard": [], "junk": []}

    def add(role: str, picture: Image.Image, form: str | None = None, quality: int | None = None) -> None:
        bench.photos[stem] = camera.encoded(picture, form, quality)
        bench.scene_of[stem] = scene
        roles[role].append(stem)

    def take() -> random.Random:
        nonlocal stem
        stem = next(names)
        return camera.dice(f"{name}/{stem}")

    stem = ""
    plain = "hard" if scene in found.without_easy else "easy"
    dice = take()
    add(plain, partner if pair else warping.MILD.of(partner, dice), found.odd.get(scene))
    dice = take()
    add(plain, warping.MILD.of(partner, dice))
    if scene not in found.without_hard:
        dice = take()
        add("hard", warping.cropped(partner, dice.uniform(0.3, 0.42), dice))
        dice = take()
        add("hard", warping.slanted(partner, 0.4, dice))
        take()
        add("hard", warping.lit(partner, 0.3))
        take()
        add("hard", warping.fitted(partner, settings.side_px // 3), quality=10)
    dice = take()
    add("junk", warping.cropped(partner, 0.05, dice))
    bench.roles[scene] = roles


# -- classes to train on -----------------------------------------------------------------------------------


class TrainingPhoto(msgspec.Struct, frozen=True):
    """A photograph of a training set before it is taken."""

    image_id: str
    class_key: str
    """Panorama and direction, or name of a photograph."""
    number: int
    listed: bool = True
    stored: bool = True
    form: str | None = None

    @property
    def member(self) -> str:
        """Path in an archive of GLDv2."""
        a, b, c = self.image_id[:3]
        return f"{a}/{b}/{c}/{self.image_id}.jpg"


class TrainingPlan(msgspec.Struct, frozen=True):
    """Classes with their photographs."""

    landmark_of: dict[str, int]
    photos: tuple[TrainingPhoto, ...]

    def archive(self, photo: TrainingPhoto, n_archives: int) -> int:
        """Return which archive holds a photograph: they are cut by the first digit."""
        return int(photo.image_id[0], 16) * n_archives // 16

    def clean_csv(self) -> str:
        """Return ``train_clean.csv``: a class per line with its photographs."""
        listed: dict[int, list[str]] = {}
        for photo in self.photos:
            if photo.listed:
                listed.setdefault(self.landmark_of[photo.class_key], []).append(photo.image_id)
        lines = [f"{landmark},{' '.join(sorted(ids))}\n" for landmark, ids in sorted(listed.items())]
        return "landmark_id,images\n" + "".join(lines)

    def category_csv(self, categories: Mapping[str, str]) -> str:
        """Return ``train_label_to_category.csv``: a class per line with the address of its category."""
        rows = []
        for key, landmark in self.landmark_of.items():
            name = categories.get(key) or "Category:Composed_" + key.replace("-", "_")
            rows.append((landmark, f"http://commons.wikimedia.org/wiki/{name}"))
        # Some published addresses hold commas, and stand in quotes then.
        quoted = [
            f'{landmark},"{address}"' if "," in address else f"{landmark},{address}"
            for landmark, address in sorted(rows)
        ]
        return "landmark_id,category\n" + "".join(f"{row}\n" for row in quoted)


def plan_training(settings: Composition) -> TrainingPlan:
    """Return the classes and photographs of the training set."""
    found = settings.training
    places = [f"{panorama}-{n}" for panorama in found.panoramas for n in range(found.directions)]
    keys = places + list(found.photos)
    dice = random.Random(f"{settings.seed}/training")
    sizes = {key: dice.randint(*found.n_photos) for key in keys}
    spare = [key for key in places if key not in found.categories]
    for key, size in zip(dice.sample(spare, len(found.small)), found.small, strict=True):
        sizes[key] = size
    numbers = dice.sample(range(1000, 200_000), len(keys))
    photos = [
        TrainingPhoto(short_id(settings.seed, "training", key, n), key, n)
        for key in keys
        for n in range(sizes[key])
    ]
    # Only large classes lose photographs or get damaged ones, so that no class falls below three by that.
    large = [i for i, photo in enumerate(photos) if sizes[photo.class_key] >= 6 and photo.number == 0]
    chosen = dice.sample(large, found.missing + len(found.odd))
    for i in chosen[: found.missing]:
        photos[i] = msgspec.structs.replace(photos[i], stored=False)
    for i, form in zip(chosen[found.missing :], found.odd, strict=True):
        photos[i] = msgspec.structs.replace(photos[i], form=form)
    for n in range(found.unlisted):
        key = places[n % len(places)]
        photos.append(TrainingPhoto(short_id(settings.seed, "unlisted", n), key, 1000 + n, listed=False))
    return TrainingPlan(dict(zip(keys, numbers, strict=True)), tuple(photos))


def take_training(photo: TrainingPhoto, camera: Photographer, settings: Composition) -> bytes:
    """Return the bytes of one photograph of a class."""
    found, dice = settings.training, camera.dice(f"training/{photo.image_id}")
    if photo.class_key in found.photos:
        picture = camera.photo(found.photos[photo.class_key])
    else:
        panorama, _, direction = photo.class_key.rpartition("-")
        yaw = int(direction) * 360 / found.directions + dice.uniform(-1, 1) * found.turn_degrees
        fov = dice.uniform(*found.field_of_view_degrees)
        picture = camera.view(
            panorama, (settings.side_px, settings.side_px * 3 // 4), fov, yaw, dice.uniform(-4, 4)
        )
    return camera.encoded(warping.VARIED.of(picture, dice), photo.form, quality=dice.choice((90, 75, 50, 20)))


# -- distractors -------------------------------------------------------------------------------------------


class View(msgspec.Struct, frozen=True):
    """A distractor before it is taken."""

    archive: int
    """From 1."""
    path: str
    """In its archive and in the list."""
    form: str | None = None


def plan_views(settings: Composition) -> list[View]:
    """Return all distractors in canonical order: archive by archive."""
    found = settings.views
    sizes = [
        found.n * (n + 1) // found.archives - found.n * n // found.archives for n in range(found.archives)
    ]
    views = [
        View(archive, f"{archive}/{short_id(settings.seed, 'view', archive, n)[:10]}.jpg")
        for archive, size in enumerate(sizes, start=1)
        for n in range(size)
    ]
    dice = random.Random(f"{settings.seed}/views")
    for i, form in zip(dice.sample(range(len(views)), len(found.odd)), found.odd, strict=True):
        views[i] = msgspec.structs.replace(views[i], form=form)
    return views


def take_view(view: View, camera: Photographer, settings: Composition) -> bytes:
    """Return the bytes of one distractor."""
    found, dice = settings.views, camera.dice(f"views/{view.path}")
    if dice.random() < found.photo_share:
        part = warping.cropped(camera.photo(dice.choice(found.photos)), dice.uniform(0.1, 0.5), dice)
        picture = warping.lit(warping.fitted(part, max(found.size_px)), dice.uniform(0.5, 1.3))
    else:
        size = found.size_px if dice.random() < 0.7 else found.size_px[::-1]
        fov, yaw = dice.uniform(*found.field_of_view_degrees), dice.uniform(-180, 180)
        picture = camera.view(
            dice.choice(found.panoramas), size, fov, yaw, dice.uniform(*found.pitch_degrees)
        )
    return camera.encoded(picture, view.form)


def taken(photos: list, take, threads: int) -> Iterator[bytes]:
    """Yield the bytes of photographs in their order, several being taken at once."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(take, photos)
