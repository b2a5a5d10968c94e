"""Composed classes to train on, named, listed and packed as those of Google Landmarks v2 are.

Source:
    GLDv2: ``train_clean.csv`` (class, its photographs) and ``train_label_to_category.csv``; photograph
    ``abcdef…`` lies at ``a/b/c/abcdef….jpg``.
"""

import random
from collections.abc import Mapping

import msgspec

from remeasure.instances import composing, warping


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


def plan(settings: composing.Composition) -> TrainingPlan:
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
        TrainingPhoto(composing.short_id(settings.seed, "training", key, n), key, n)
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
        photos.append(
            TrainingPhoto(composing.short_id(settings.seed, "unlisted", n), key, 1000 + n, listed=False)
        )
    return TrainingPlan(dict(zip(keys, numbers, strict=True)), tuple(photos))


def take(photo: TrainingPhoto, camera: composing.Photographer, settings: composing.Composition) -> bytes:
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
    # Half of them are views of the kinds that benchmarks find hard; all are cut and lit differently.
    kind = dice.choice(("varied",) * len(warping.HARD) + warping.HARD)
    picture = warping.seen(warping.MILD.of(picture, dice), kind, dice)
    quality = 10 if kind == "coarse" else dice.choice((90, 75, 50))
    return camera.encoded(picture, photo.form, quality=quality)
