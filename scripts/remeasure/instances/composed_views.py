"""Composed distractors: small views of panoramas and parts of photographs, in archives with one list.

Source:
    The million distractors of the revisited benchmarks: numbered archives, and a list with a path per line.
"""

import random

import msgspec

from remeasure.instances import composing, warping


class View(msgspec.Struct, frozen=True):
    """A distractor before it is taken."""

    archive: int
    """From 1."""
    path: str
    """In its archive and in the list."""
    form: str | None = None


def plan(settings: composing.Composition) -> list[View]:
    """Return all distractors in canonical order: archive by archive."""
    found = settings.views
    views = [
        View(archive, f"{archive}/{composing.short_id(settings.seed, 'view', archive, n)[:10]}.jpg")
        for archive, size in enumerate(found.archives, start=1)
        for n in range(size)
    ]
    dice = random.Random(f"{settings.seed}/views")
    for i, form in zip(dice.sample(range(len(views)), len(found.odd)), found.odd, strict=True):
        views[i] = msgspec.structs.replace(views[i], form=form)
    return views


def take(view: View, camera: composing.Photographer, settings: composing.Composition) -> bytes:
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
