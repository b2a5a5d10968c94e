"""From the photographs of a piece to a file of vectors: decoded beside the model, batched by size, resumable.

A piece is described in blocks of rows. What is batched together depends on the block alone: a killed job goes
on at its first missing block and ends with the same bytes.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import vectors_file
from remeasure.instances.decode import STATUSES, UNDECODABLE, Decoded
from remeasure.instances.kept_blocks import KeptBlocks
from remeasure.instances.pieces import Piece
from remeasure.instances.vectors_file import ABOUT, NAME, Column
from remeasure.looking import in_order
from remeasure.progress import Progress

log = logging.getLogger("remeasure.describing")

CLS, SIZE, STATUS, BOX, LANDMARK, ROW = "cls", "size", "status", "box", "landmark_id", "row"


class Describer(Protocol):
    """What turns pixels into rows of datasets."""

    columns: dict[str, Column]
    """The datasets that it fills."""
    batch: int
    """Inputs that a model takes at once."""
    block_rows: int
    """Photographs between two points from which a killed job goes on."""

    def decode(self, data: bytes) -> Decoded:
        """Return the pixels of a photograph; called in threads."""
        ...

    def prepare(self, pixels: np.ndarray) -> Sequence[tuple[Hashable, Any]]:
        """Return inputs of the model, each with its kind; only inputs of one kind are batched. In threads."""
        ...

    def run(self, kind: Hashable, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return what the model makes of inputs of one kind, one for each."""
        ...

    def finish(self, outputs: Sequence[Any]) -> dict[str, Any]:
        """Return a row of every column from the outputs of one photograph, in the order of its inputs.

        Raises:
            ValueError: they are of no use; says why.
        """
        ...


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to length 1.

    Args:
        vectors: shape (…, dim), any type of numbers; sums are of float32 at least.

    Returns:
        The same shape, float32.

    Raises:
        ValueError: one is zero, or not finite.

    Source:
        Landmark card, pitfall 17: in float16 the squares of small numbers vanish.
    """
    wide = np.asarray(vectors, dtype=np.float32)
    norms = np.sqrt(np.einsum("...i,...i->...", wide, wide, dtype=np.float64))
    if not np.isfinite(norms).all() or not norms.all():
        raise ValueError(f"a vector has the length {norms.reshape(-1)[_first_bad(norms.reshape(-1))]}")
    return (wide / norms[..., None]).astype(np.float32)


def _first_bad(norms: np.ndarray) -> int:
    return int(np.argmax(~np.isfinite(norms) | (norms == 0)))


def batched_by_kind(
    describer: Describer, prepared: Iterable[tuple[int, Sequence[tuple[Hashable, Any]]]]
) -> dict[int, list[Any]]:
    """Run a model over inputs, those of one kind together.

    Args:
        describer: the model.
        prepared: (key of a photograph, its inputs with their kinds).

    Returns:
        By key the outputs in the order of the inputs.
    """
    waiting: dict[Hashable, list[tuple[int, int, Any]]] = defaultdict(list)
    outputs: dict[int, list[Any]] = {}

    def run(kind: Hashable) -> None:
        group = waiting.pop(kind)
        found = describer.run(kind, [value for _, _, value in group])
        for (key, place, _), output in zip(group, found, strict=True):
            outputs[key][place] = output

    n_waiting, limit = 0, 8 * describer.batch
    for key, inputs in prepared:
        outputs[key] = [None] * len(inputs)
        for place, (kind, value) in enumerate(inputs):
            waiting[kind].append((key, place, value))
            n_waiting += 1
            if len(waiting[kind]) == describer.batch:
                run(kind)
                n_waiting -= describer.batch
        # Photographs of many sizes: memory is bounded, and the fullest batch is the best one to give up.
        while n_waiting > limit:
            fullest = max(waiting, key=lambda kind: len(waiting[kind]))
            n_waiting -= len(waiting[fullest])
            run(fullest)
    for kind in list(waiting):
        run(kind)
    return outputs


def vectors_of(describer: Describer, pictures: Iterable[np.ndarray], key: str = "cls") -> np.ndarray:
    """Describe decoded photographs at once.

    Args:
        describer: the model.
        pictures: each of shape (height, width, 3), uint8, red, green, blue.
        key: the column that is wanted.

    Returns:
        Shape (n, *row of the column).
    """
    column = describer.columns[key]
    prepared = ((i, describer.prepare(pixels)) for i, pixels in enumerate(pictures))
    outputs = batched_by_kind(describer, prepared)
    rows = [describer.finish(outputs[i])[key] for i in sorted(outputs)]
    return np.array(rows, dtype=column.dtype).reshape(len(rows), *column.row)


class _Photo(NamedTuple):
    inputs: Sequence[tuple[Hashable, Any]]
    status: int
    box: tuple[int, int, int, int]
    problem: str | None


def _prepare(describer: Describer, piece: Piece, rule: str, i: int) -> _Photo:
    """Decode, crop and scale a photograph; runs in a thread."""
    found = describer.decode(piece.read(i))
    if found.pixels is None:
        return _Photo((), found.status, (0, 0, 0, 0), found.problem)
    left, top, right, bottom = box = piece.box(i, found.size, rule)
    return _Photo(describer.prepare(found.pixels[top:bottom, left:right]), found.status, box, found.problem)


def columns_of(describer: Describer, piece: Piece, *, with_rows: bool) -> dict[str, Column]:
    """Return the datasets of a piece's file."""
    found = {NAME: Column(vectors_file.as_names(piece.names, piece.name).dtype)} | describer.columns
    found |= {STATUS: Column("u1"), SIZE: Column("i4", (2,))}
    found |= {BOX: Column("i4", (4,))} if piece.boxes is not None else {}
    found |= {LANDMARK: Column("i4")} if piece.landmark_id is not None else {}
    return found | ({ROW: Column("i8")} if with_rows else {})


def _block(
    describer: Describer, piece: Piece, photos: Iterator[tuple[int, _Photo]], start: int, stop: int
) -> dict[str, np.ndarray]:
    """Take photographs ``start`` to ``stop``; return their rows of the datasets that depend on pixels."""
    n = stop - start
    made = {key: np.zeros((n, *column.row), column.dtype) for key, column in describer.columns.items()}
    made |= {STATUS: np.zeros(n, np.uint8), SIZE: np.zeros((n, 2), np.int32), BOX: np.zeros((n, 4), np.int32)}

    def seen() -> Iterator[tuple[int, Sequence[tuple[Hashable, Any]]]]:
        for _ in range(n):
            i, photo = next(photos)
            box = photo.box
            made[STATUS][i - start], made[BOX][i - start] = photo.status, box
            made[SIZE][i - start] = box[2] - box[0], box[3] - box[1]
            if photo.problem:
                log.warning("%s: %s: %s", piece.names[i], STATUSES[photo.status], photo.problem)
            if photo.status != UNDECODABLE:
                yield i, photo.inputs

    for i, outputs in batched_by_kind(describer, seen()).items():
        try:
            row = describer.finish(outputs)
        except ValueError as error:
            raise RemeasureError(
                f"{piece.names[i]}: its description is of no use: {error}; look at the photograph, the "
                "weights and the precision"
            ) from None
        for key, values in row.items():
            # What is too large for float16 becomes infinite here, and is refused where it is written.
            with np.errstate(over="ignore"):
                made[key][i - start] = values
    return made


def describe(
    piece: Piece,
    describer: Describer,
    out: Path,
    about: Mapping[str, Any],
    *,
    rule: str,
    threads: int,
    with_rows: bool = False,
) -> dict[str, int]:
    """Describe every photograph of a piece, in order, and write the file.

    Args:
        piece: the photographs.
        describer: the model.
        out: the file; finished blocks lie in ``<out>.blocks`` until it is there.
        about: what made it (``vectors_file``).
        rule: by which boxes become whole pixels (``pieces.CROPS``).
        threads: photographs that are decoded and scaled at once; changes no value.
        with_rows: whether the rows in the piece are stored, for files that hold only some of them.

    Returns:
        Photographs by status.

    Raises:
        RemeasureError: a photograph cannot be read, or its vectors are zero or not finite.
    """
    size = describer.block_rows
    blocks = KeptBlocks(out, {ABOUT: about, NAME: piece.names, ROW: piece.rows.tolist(), "block_rows": size})
    spans = [(start, min(start + size, len(piece))) for start in range(0, len(piece), size)]
    missing = [span for span in spans if blocks.get(span[0], span[1] - span[0]) is None]
    n_kept = len(piece) - sum(stop - start for start, stop in missing)
    if n_kept:
        log.info("%s: %d of %d photographs are described already", piece.name, n_kept, len(piece))
    progress = Progress(log, f"{piece.name} photographs", len(piece) - n_kept)
    with ThreadPoolExecutor(max(1, threads)) as pool:
        try:
            wanted = (i for start, stop in missing for i in range(start, stop))
            prepare: Callable[[int], _Photo] = lambda i: _prepare(describer, piece, rule, i)  # noqa: E731
            photos = in_order(pool, prepare, wanted, 2 * max(threads, describer.batch))
            for start, stop in missing:
                made = _block(describer, piece, photos, start, stop)
                vectors_file.write(blocks.path(start), piece.names[start:stop], about={}, **made)
                progress.add(stop - start)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    progress.finish()
    return _join(piece, describer, blocks, spans, out, about, with_rows)


def _join(
    piece: Piece,
    describer: Describer,
    blocks: KeptBlocks,
    spans: Sequence[tuple[int, int]],
    out: Path,
    about: Mapping[str, Any],
    with_rows: bool,
) -> dict[str, int]:
    """Make one file of all blocks; return the photographs by status."""
    counts: Counter[int] = Counter()
    columns = columns_of(describer, piece, with_rows=with_rows)
    names = vectors_file.as_names(piece.names, piece.name)
    with vectors_file.writing(out, len(piece), columns, about) as put:
        for start, stop in spans:
            block = blocks.get(start, stop - start)
            if block is None:
                raise RemeasureError(f"{blocks.path(start)}: went away meanwhile; run this target again")
            known = {NAME: names[start:stop], ROW: piece.rows[start:stop]}
            if piece.landmark_id is not None:
                known[LANDMARK] = piece.landmark_id[start:stop]
            put(start, **{key: known[key] if key in known else block.read(key) for key in columns})
            counts.update(block.read(STATUS).tolist())
    blocks.forget()
    return {word: counts[status] for status, word in enumerate(STATUSES)}
