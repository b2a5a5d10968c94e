"""Vectors on disk: descriptors in HDF5 with an order file, FAISS indexes, checks on all that is loaded.

Row i of ``descriptors`` belongs to line i of ``order.txt``; FAISS ids are row positions. An ``Identity``
travels with the vectors from the encoder to the search, so that vectors of different encoders never meet.
"""

import hashlib
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from remeasure.encoders import EncoderSettings
from remeasure.errors import RemeasureError
from remeasure.files import atomic_open, atomic_path, open_regular

DATASET = "descriptors"
NORM_TOLERANCE = 1e-3
_CHUNK_ROWS = 1024
SPACE = (
    "model_sha256",
    "tokenizer_sha256",
    "adapter_sha256",
    "dim",
    "normalised",
    "pooling",
    "input_limit",
    "dtype",
    "device",
)
"""Fields of an ``Identity`` that decide whether two vectors may be compared."""


class Identity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides the values of a vector. Two vectors are comparable when ``space`` of both is equal."""

    unit: str
    """What one vector stands for: tiles, passages, lines or pictures."""
    encoder: str
    """Name for people, for example "OCR + bge-small-en-v1.5"."""
    model_sha256: str
    tokenizer_sha256: str | None = None
    adapter_sha256: str | None = None
    """File hash of the trained adapter; null for a base encoder."""
    dim: int
    normalised: bool
    pooling: str
    """How one vector is made of many: "cls" or "gem3"."""
    input_limit: str
    """Longest text or size of the picture that the encoder sees, for example "512 tokens"."""
    dtype: str = "float32"
    device: str = "cpu"

    def space(self) -> tuple:
        """Return the fields that must agree between query and document."""
        return tuple(getattr(self, name) for name in SPACE)


class Descriptors(NamedTuple):
    """Vectors of shape (n, dim), float32; the id of each row; what made them."""

    vectors: np.ndarray
    order: tuple[str, ...]
    identity: Identity


class IndexSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the index is built: exact ("flat"), or inverted lists ("ivf", then with the three numbers)."""

    kind: Literal["flat", "ivf"]
    encoder: EncoderSettings
    """What made the vectors, as the configuration says it."""
    nlist: int | None = None
    nprobe: int | None = None
    seed: int | None = None


def order_sha256(order: Iterable[str]) -> str:
    """Return the SHA-256 of ids in order, equal to that of ``order.txt``."""
    digest = hashlib.sha256()
    for item in order:
        digest.update(item.encode() + b"\n")
    return digest.hexdigest()


def check_vectors(vectors: np.ndarray, identity: Identity, order: tuple[str, ...], place: str) -> None:
    """Check rows against their order and identity.

    Args:
        vectors: shape (n, dim), float32.
        identity: what the rows claim to be.
        order: n ids.
        place: file name for the message.

    Raises:
        RemeasureError: no rows, wrong shape or dtype, not finite, a zero vector, not normalised; names the
            first offending id.
    """
    redo = f"delete {place} and rerun the target that writes it"
    if vectors.ndim != 2 or not len(vectors):
        raise RemeasureError(f"{place}: holds no vectors (shape {vectors.shape}), expected (n, dim); {redo}")
    if len(vectors) != len(order):
        raise RemeasureError(f"{place}: {len(vectors)} vectors, but the order names {len(order)} ids; {redo}")
    if vectors.dtype != np.float32 or vectors.shape[1] != identity.dim:
        raise RemeasureError(
            f"{place}: vectors are {vectors.dtype} of {vectors.shape[1]} dimensions, "
            f"expected float32 of {identity.dim}; {redo}"
        )
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    problems = {
        "is not finite": ~np.isfinite(norms),
        "is zero": norms == 0,
        "is not normalised": np.abs(norms - 1) > NORM_TOLERANCE
        if identity.normalised
        else np.zeros(len(norms), dtype=bool),
    }
    for problem, where in problems.items():
        if where.any():
            row = int(np.argmax(where))
            raise RemeasureError(
                f"{place}: vector of {order[row]} (row {row}) {problem} (norm {norms[row]:.6g}), "
                f"and {int(where.sum()) - 1} more; {redo}"
            )


def write_descriptors(
    path: Path,
    order_path: Path,
    blocks: Iterable[tuple[list[str], np.ndarray]],
    identity: Identity,
    *,
    may_be_empty: bool = False,
) -> int:
    """Stream (ids, vectors) blocks into an HDF5 file and its order file; equal content is equal bytes.

    Returns:
        Number of rows.

    Raises:
        RemeasureError: no rows at all where that may not be, or a block that ``check_vectors`` refuses, or an
            id twice.
    """
    import h5py

    seen: set[str] = set()
    with atomic_path(path) as temporary, atomic_open(order_path) as order_stream:
        with h5py.File(temporary, "w") as store:
            rows = store.create_dataset(
                DATASET,
                shape=(0, identity.dim),
                maxshape=(None, identity.dim),
                chunks=(_CHUNK_ROWS, identity.dim),
                dtype="<f4",
                track_times=False,
            )
            rows.attrs["identity"] = msgspec.json.encode(identity, order="sorted").decode()
            for ids, vectors in blocks:
                if not ids:
                    continue
                _check_ids(ids, seen, order_path)
                check_vectors(vectors, identity, tuple(ids), str(path))
                rows.resize(len(seen), axis=0)
                rows[len(seen) - len(ids) :] = vectors
                order_stream.writelines(f"{item}\n" for item in ids)
            if not seen and not may_be_empty:
                raise RemeasureError(
                    f"{path}: there is nothing to embed (0 {identity.unit}); look at the inputs of this "
                    "step, the one before it came out empty"
                )
    return len(seen)


def _check_ids(ids: list[str], seen: set[str], path: Path) -> None:
    for item in ids:
        if item in seen or not item or "\n" in item:
            raise RemeasureError(
                f"{path}: id {item!r} is empty, has a line end, or stands there twice; ids must be unique: "
                "correct the file that names it"
            )
        seen.add(item)


def read_order(path: Path) -> tuple[str, ...]:
    """Read ``order.txt``: one id per line, all different.

    Raises:
        RemeasureError: missing, empty, or an id twice.
    """
    try:
        order = tuple(Path(path).read_text(encoding="utf-8").splitlines())
    except OSError as error:
        raise RemeasureError(f"{path}: cannot be read ({error.strerror}); rerun the embedding") from None
    if not order:
        raise RemeasureError(f"{path}: names no ids; delete it and rerun the embedding")
    _check_ids(list(order), set(), path)
    return order


def read_descriptors(path: Path, order_path: Path) -> Descriptors:
    """Read vectors with their order and identity, all checked (``check_vectors``)."""
    import h5py

    order = read_order(order_path)
    try:
        with h5py.File(path, "r") as store:
            rows = store[DATASET]
            identity = msgspec.json.decode(rows.attrs["identity"], type=Identity)
            vectors = rows[...]
    except (OSError, KeyError, msgspec.MsgspecError) as error:
        raise RemeasureError(
            f"{path}: not a descriptor file ({error}); delete it and rerun the embedding"
        ) from None
    check_vectors(vectors, identity, order, str(path))
    return Descriptors(vectors, order, identity)


class DescriptorRows:
    """The rows of a descriptor file one after the other; a context manager.

    Args:
        path: vectors; may hold none.
        order_path: their ids; ``order_digest`` is that of the file once all rows were read.

    Raises:
        RemeasureError: not a descriptor file, or another number of ids than of rows.
    """

    def __init__(self, path: Path, order_path: Path) -> None:
        import h5py

        self._path = path
        self.order_digest = hashlib.sha256()
        try:
            self._store = h5py.File(path, "r")
            self._rows = self._store[DATASET]
            self.identity = msgspec.json.decode(self._rows.attrs["identity"], type=Identity)
            self._order = open_regular(order_path)
        except (OSError, KeyError, msgspec.MsgspecError) as error:
            raise RemeasureError(
                f"{path}: not a descriptor file ({error}); delete it and rerun the embedding"
            ) from None

    def __enter__(self) -> "DescriptorRows":
        return self

    def __exit__(self, *_) -> None:
        self._order.close()
        self._store.close()

    def __iter__(self) -> Iterator[tuple[str, np.ndarray]]:
        n = len(self._rows)
        for start in range(0, n, _CHUNK_ROWS):
            for row in self._rows[start : start + _CHUNK_ROWS]:
                line = self._order.readline()
                self.order_digest.update(line)
                name = line.decode(errors="replace").removesuffix("\n")
                if not name:
                    raise RemeasureError(
                        f"{self._path}: {n} vectors, but its order names fewer ids; delete it and rerun the "
                        "embedding"
                    )
                yield name, row
        if self._order.readline():
            raise RemeasureError(
                f"{self._path}: {n} vectors, but its order names more ids; delete it and rerun the embedding"
            )


def n_repeated(vectors: np.ndarray) -> int:
    """Return how many rows equal an earlier row exactly (twins, for example tiles with the same text)."""
    # Hashes, not rows: a set of rows would be the whole matrix once more.
    return len(vectors) - len({hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in vectors})


def _faiss():
    """Import FAISS without its chatter and with one thread, so that sums do not depend on the machine."""
    logging.getLogger("faiss.loader").setLevel(logging.WARNING)
    import faiss

    faiss.omp_set_num_threads(1)
    return faiss


def build_index(vectors: np.ndarray, settings: IndexSettings):
    """Build a FAISS index of inner products whose ids are the row positions.

    Args:
        vectors: shape (n, dim), float32, checked.
        settings: kind and, for "ivf", its numbers.

    Returns:
        (index, facts): the FAISS index and a dict for the stage record.

    Source:
        PixelRAG uses IVF-Flat with an unseeded training sample; here the sample is drawn from the seed and
        its row numbers are hashed into the facts.
    """
    faiss = _faiss()
    n, dim = vectors.shape
    if settings.kind == "flat":
        index = faiss.IndexFlatIP(dim)
        index.add(vectors)
        return index, {}
    if settings.nlist is None or settings.nprobe is None or settings.seed is None:
        raise RemeasureError("index settings: kind ivf needs nlist, nprobe and seed; add what is missing")
    if not 1 <= settings.nlist <= n or not 1 <= settings.nprobe <= settings.nlist:
        raise RemeasureError(
            f"index settings: nlist {settings.nlist} and nprobe {settings.nprobe} do not fit {n} vectors; "
            "use 1 <= nprobe <= nlist <= number of vectors, or kind flat"
        )
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, settings.nlist, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = settings.seed
    index.cp.min_points_per_centroid = 1
    sample = _training_sample(n, settings.nlist * index.cp.max_points_per_centroid, settings.seed)
    index.train(vectors[sample])
    index.add(vectors)
    index.nprobe = settings.nprobe
    digest = hashlib.sha256(sample.astype("<i8").tobytes()).hexdigest()
    return index, {"training_rows": len(sample), "training_rows_sha256": digest}


def _training_sample(n: int, limit: int, seed: int) -> np.ndarray:
    """Return sorted row numbers: all of n, or ``limit`` of them drawn from the seed."""
    if n <= limit:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size=limit, replace=False))


def write_index(path: Path, index) -> None:
    """Write a FAISS index, whole or not at all."""
    with atomic_path(path) as temporary:
        _faiss().write_index(index, str(temporary))


def read_index(path: Path, n: int, dim: int, mapped: bool = False):
    """Read a FAISS index and check its size.

    Args:
        path: the index.
        n: number of vectors.
        dim: their dimensions.
        mapped: leave the vectors in the file, which must be on a disk of this machine; memory then holds what
            searches touch.

    Raises:
        RemeasureError: missing, damaged, or not n vectors of dim dimensions.
    """
    faiss = _faiss()
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise RemeasureError(
            f"{path}: not a readable index ({reason}); delete it and rerun build_index"
        ) from None
    if index.ntotal != n or index.d != dim:
        raise RemeasureError(
            f"{path}: holds {index.ntotal} vectors of {index.d} dimensions, the order and encoder say {n} of "
            f"{dim}; delete it and rerun build_index"
        )
    if hasattr(index, "make_direct_map"):
        index.make_direct_map()
    return index


def search_index(index, queries: np.ndarray, k: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each query the best ``k`` row positions and their scores, best first.

    Candidates come from FAISS; their scores are computed again in float64, row by row, so that equal vectors
    have equal scores, and ties fall to the lower position (``ranking.top_k``). Filler ids never come out:
    an inverted index that probes too few lists gives fewer than ``k``.

    Args:
        index: as ``read_index`` gives it.
        queries: shape (m, dim), float32.
        k: at least 1; more than there are vectors gives all.

    Yields:
        (positions, scores): int64 and float64, equal length up to k.
    """
    from remeasure import ranking

    for query in queries:
        wanted = min(index.ntotal, 2 * k + 16)
        while True:
            rough, found = index.search(query[None, :], wanted)
            found = np.sort(found[0][found[0] >= 0])
            if not len(found):
                break
            exact = ranking.scores(index.reconstruct_batch(found), query)
            best = ranking.top_k(exact, k)
            # All that tie with the last one kept must be among the candidates before the rule can choose.
            complete = wanted == index.ntotal or len(found) < wanted
            if complete or exact.min() < exact[best[-1]] - ranking.TIE:
                break
            wanted = min(index.ntotal, 4 * wanted)
        if not len(found):
            yield found, np.empty(0)
            continue
        yield found[best], exact[best]
