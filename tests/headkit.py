"""A small training set and two benchmarks as files, made of directions that classes have in common."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from remeasure.instances import labels as labels_file
from remeasure.instances import vectors_file
from remeasure.instances.labels import Labels, Truth

WIDTH, SCALES = 12, 2
ABOUT = {"settings": {"name": "toy", "dim": WIDTH}, "extractor": "toy"}
SETTINGS = {
    "name": "standard",
    "seed": 0,
    "training": "places",
    "has_leaks": True,
    "backbone": {"name": "toy", "dim": WIDTH, "scales": [1.0, 1.4]},
    "decontaminated": False,
    "hidden": 16,
    "dim": 8,
    "margin": 0.3,
    "scale": 32.0,
    "label_smoothing": 0.1,
    "learning_rate": 1e-2,
    "weight_decay": 5e-4,
    "epochs": 4,
    "batch": 16,
    "patience": 8,
    "min_class": 3,
    "train_scale": "mean",
    "select_on": "walls",
    "holdout_share": 0.2,
    "report_on": ["walls", "things"],
    "photos_of": [["walls", "walls"], ["things", "things"]],
}


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors of length 1 along the last axis, as float16."""
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float16)


def noisy(rng: np.random.Generator, centre: np.ndarray, n: int, noise: float = 0.5) -> np.ndarray:
    """Return n photographs of a place, each at two scales: float16 [n, 2, 12].

    Places differ in the first half of the numbers; the other half has nothing to do with them.
    """
    centre = centre * np.repeat([1.0, 0.0], WIDTH // 2)
    weather = noise * rng.normal(size=(n, 1, WIDTH)) * np.repeat([0.2, 1.0], WIDTH // 2)
    return unit(centre + weather + 0.05 * rng.normal(size=(n, SCALES, WIDTH)))


def image_id(landmark: int, number: int) -> str:
    """Return sixteen hexadecimal digits."""
    return f"{landmark:08x}{number:08x}"


def write_training(
    folder: Path, sizes: dict[int, int], leaks: set[int] = frozenset(), pieces: int = 2
) -> dict:
    """Write plan and vectors of classes; return the options that name them."""
    rng = np.random.default_rng(7)
    ids, landmarks, vectors = [], [], []
    for landmark, n in sizes.items():
        centre = rng.normal(size=WIDTH)
        centre /= np.linalg.norm(centre)
        ids += [image_id(landmark, number) for number in range(n)]
        landmarks += [landmark] * n
        vectors.append(noisy(rng, centre, n))
    vectors = np.concatenate(vectors)
    write_plan(folder / "plan.parquet", ids, landmarks, leaks)
    paths = []
    for number, rows in enumerate(np.array_split(np.arange(len(ids)), pieces)):
        paths.append(folder / f"{number + 1}of{pieces}.h5")
        write_cls(paths[-1], [ids[row] for row in rows], vectors[rows], [landmarks[row] for row in rows])
    return {"--plan": [folder / "plan.parquet"], "--cls": paths}


def write_plan(path: Path, ids: list[str], landmarks: list[int], leaks: set[int] = frozenset()) -> None:
    """Write a plan as ``plan_photos`` does."""
    table = {
        "image_id": pa.array(ids, pa.string()),
        "landmark_id": pa.array(landmarks, pa.int32()),
        "tar": pa.nulls(len(ids), pa.int16()),
        "leak": pa.array([landmark in leaks for landmark in landmarks], pa.bool_()),
        "class_size": pa.array([landmarks.count(landmark) for landmark in landmarks], pa.int32()),
    }
    parquet.write_table(pa.table(table), path)


def write_cls(path: Path, ids: list[str], vectors: np.ndarray, landmarks: list[int], status=None) -> None:
    """Write a piece of training vectors; names are members of an archive."""
    names = [f"{one[0]}/{one[1]}/{one[2]}/{one}.jpg" for one in ids]
    vectors_file.write(
        path,
        names,
        about=ABOUT,
        cls=vectors,
        size=np.full((len(ids), 2), 100, np.int32),
        status=np.zeros(len(ids), np.uint8) if status is None else np.array(status, np.uint8),
        landmark_id=np.array(landmarks, np.int32),
    )


def write_bench(folder: Path, name: str, seed: int, n_places: int = 5, n_each: int = 4) -> dict:
    """Write labels, audit and vectors of a benchmark: one query per place; return the options' files."""
    folder = folder / name
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    gallery, queries, gnd = [], [], []
    for place in range(n_places):
        centre = rng.normal(size=WIDTH)
        centre /= np.linalg.norm(centre)
        gallery.append(noisy(rng, centre, n_each))
        queries.append(noisy(rng, centre, 1))
        rows = [place * n_each + i for i in range(n_each)]
        gnd.append(
            Truth(bbx=(0.0, 0.0, 9.0, 9.0), easy=tuple(rows[:2]), hard=tuple(rows[2:3]), junk=tuple(rows[3:]))
        )
    names = [f"{name}_{row:06d}" for row in range(n_places * n_each)]
    asked = [f"{name}_query_{row:06d}" for row in range(n_places)]
    truth = Labels(
        schema=1,
        dataset=name,
        source_sha256="0" * 64,
        imlist=tuple(names),
        qimlist=tuple(asked),
        gnd=tuple(gnd),
    )
    labels_file.write(folder / "labels.json", truth)
    (folder / "audit.json").write_text(json.dumps({"dataset": name, "checks": [], "ok": True}))
    forms = {"queries": queries, "whole": [noisy(rng, found[0, 0], 1, 2.0) for found in queries]}
    forms["instructed"] = forms["whole"][::-1]
    pieces = [("1of1", names, gallery), *((piece, asked, found) for piece, found in forms.items())]
    for piece, members, vectors in pieces:
        found = np.concatenate(vectors)
        vectors_file.write(
            folder / f"{piece}.h5",
            members,
            about=ABOUT,
            cls=found,
            size=np.full((len(found), 2), 100, np.int32),
            status=np.zeros(len(found), np.uint8),
        )
    return {
        "--labels": folder / "labels.json",
        "--audits": folder / "audit.json",
        "--gallery-cls": folder / "1of1.h5",
        "--query-cls": folder / "queries.h5",
    }


def benches(folder: Path) -> dict[str, list[Path]]:
    """Write the two benchmarks of ``SETTINGS``; return options with their files."""
    both = [write_bench(folder, "walls", 1), write_bench(folder, "things", 2)]
    return {option: [one[option] for one in both] for option in both[0]}


def words(options: dict[str, list[Path]]) -> list[str]:
    """Return options as a command line has them."""
    return [str(word) for option, paths in options.items() for word in (option, *paths)]


def outputs(folder: Path) -> list[str]:
    """Return the output options of ``train_head`` in a folder."""
    named = {
        "out": "0.safetensors",
        "holdout": "0.holdout.safetensors",
        "report": "0.report.json",
        "record": "0.json",
    }
    return [word for option, name in named.items() for word in (f"--{option}", str(folder / name))]
