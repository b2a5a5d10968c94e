"""A composed benchmark: queries of scenes, and a gallery that shows them plainly, hardly, or too little."""

import random

import msgspec

from remeasure.instances import composing, warping


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


def take(name: str, camera: composing.Photographer, settings: composing.Composition) -> Benchmark:
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
    bench: Benchmark, name: str, scene: str, camera: composing.Photographer, settings: composing.Composition
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
    bench: Benchmark, name: str, scene: str, camera: composing.Photographer, settings: composing.Composition
) -> None:
    """Add what is to be found: plain views, hard ones, and parts that show too little."""
    found = settings.benchmarks[name]
    files = found.scenes[scene]
    kinds = ["easy", "easy", *([] if scene in found.without_hard else warping.HARD), "junk"]
    roles: dict[str, list[str]] = {"easy": [], "hard": [], "junk": []}
    for number, kind in enumerate(kinds, start=3):
        stem = f"{scene}_{number:06d}"
        # The second of two photographs is another view already.
        as_it_is = number == 3 and len(files) == 2
        picture = camera.photo(files[-1])
        if not as_it_is:
            picture = warping.seen(picture, kind, camera.dice(f"{name}/{stem}"))
        form = found.odd.get(scene) if number == 3 else None
        bench.photos[stem] = camera.encoded(picture, form, quality=10 if kind == "coarse" else None)
        bench.scene_of[stem] = scene
        role = "hard" if kind in warping.HARD or (kind == "easy" and scene in found.without_easy) else kind
        roles[role].append(stem)
    bench.roles[scene] = roles
