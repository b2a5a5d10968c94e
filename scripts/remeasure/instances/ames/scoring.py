"""Logits of many pairs of photographs: what is alike is scored together, in batches of one size.

Photographs of one length need no mask, so pairs are sorted by the lengths of their two sides. A length is
rounded up to a multiple, else every small photograph would be a batch of its own; those whose length was
rounded are masked, and never scored together with others: a pair's logit does not depend on the pairs beside
it.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import torch_module
from remeasure.instances.ames.model import Ames, Side
from remeasure.instances.ames.weights import Shape

if TYPE_CHECKING:
    from torch import Tensor

LENGTH_STEP = 32
_TOKENS_AT_ONCE = {"cpu": 3_200, "cuda": 153_600}
"""Tokens of both sides in a batch: more is not faster on a CPU, and fills up more for nothing."""
T = TypeVar("T")
Numeric = Literal["fp32", "tf32", "fp16"]


class Ready(NamedTuple):
    """Photographs whose first layer is done."""

    sides: dict[tuple[int, bool], Side]
    """By length and whether it is masked."""
    kinds: list[tuple[int, bool]]
    """Of every photograph."""
    places: np.ndarray
    """Which of its kind it is, [n] int64."""


def device() -> str:
    """Return where torch computes: a GPU where there is one."""
    return "cuda" if torch_module.load().cuda.is_available() else "cpu"


def opened(
    tensors: dict[str, np.ndarray], shape: Shape, numeric: Numeric, where: str, threads: int = 1
) -> Ames:
    """Return a reranker that is ready to score.

    Args:
        tensors: as ``weights.read`` returns them.
        shape: sizes.
        numeric: fp32 is the reference; tf32 lets a GPU multiply with 10 bits; fp16 stores tokens and weights
            in 16.
        where: device.
        threads: of a CPU, each with batches of its own: what comes out does not depend on how many there are.
    """
    torch = torch_module.load()
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = numeric == "tf32"
    torch.backends.cudnn.allow_tf32 = numeric == "tf32"
    return Ames(tensors, shape, where, half=numeric == "fp16", threads=threads)


def kind_of(n_valid: int, n: int) -> tuple[int, bool]:
    """Return the length that a photograph is scored with, and whether some of that is padding."""
    length = min(n, -(-n_valid // LENGTH_STEP) * LENGTH_STEP)
    return length, length != n_valid


def ready(model: Ames, tokens: np.ndarray, n_valid: np.ndarray) -> Ready:
    """Do what is done once for each photograph.

    Args:
        model: the reranker.
        tokens: [m, n, width] float32, zero in padding.
        n_valid: [m], at least 1.

    Raises:
        RemeasureError: a photograph without tokens, whose logit would be a number without meaning.
    """
    torch = torch_module.load()
    if len(n_valid) and n_valid.min() < 1:
        raise RemeasureError(
            f"photograph {int(np.argmin(n_valid))} of {len(n_valid)} has no tokens; it cannot be reranked"
        )
    kinds = [kind_of(int(count), tokens.shape[1]) for count in n_valid]
    sides: dict[tuple[int, bool], Side] = {}
    places = np.zeros(len(kinds), np.int64)
    for kind in dict.fromkeys(kinds):
        rows = np.array([row for row, other in enumerate(kinds) if other == kind])
        places[rows] = np.arange(len(rows))
        length, masked = kind
        at_once = _at_once(model, 2 * length)
        filled = _filled(rows, at_once)
        parts = np.split(filled, np.arange(at_once, len(filled), at_once))
        jobs = ((model, tokens, n_valid, length, masked, part) for part in parts)
        made = list(_in_threads(model, _side, jobs))
        joined = [
            None if column[0] is None else torch.cat(column)[: len(rows)]
            for column in zip(*made, strict=True)
        ]
        sides[kind] = Side(*joined)
    return Ready(sides, kinds, places)


def _side(
    model: Ames, tokens: np.ndarray, n_valid: np.ndarray, length: int, masked: bool, rows: np.ndarray
) -> Side:
    torch = torch_module.load()
    counts = torch.from_numpy(n_valid[rows]).to(model.device) if masked else None
    return model.side(torch.from_numpy(np.ascontiguousarray(tokens[rows, :length])).to(model.device), counts)


def logits(model: Ames, queries: Ready, gallery: Ready, pairs: np.ndarray) -> np.ndarray:
    """Score pairs.

    Args:
        model: the reranker.
        queries: of some photographs.
        gallery: of others.
        pairs: [m, 2], which of the ones with which of the others.

    Returns:
        [m] float32.

    Raises:
        RemeasureError: a logit that is not finite.
    """
    torch = torch_module.load()
    by_kind: dict[tuple, list[int]] = {}
    for number, (query, photo) in enumerate(pairs.tolist()):
        by_kind.setdefault((queries.kinds[query], gallery.kinds[photo]), []).append(number)
    found = torch.empty(len(pairs), dtype=torch.float32, device=model.device)
    for (one, other), numbers in by_kind.items():
        at_once = _at_once(model, one[0] + other[0])
        rows = _filled(np.array(numbers), at_once)
        # All places at once: a GPU would be waited for at every copy.
        places = queries.places[pairs[rows, 0]], gallery.places[pairs[rows, 1]]
        ones, others = (torch.from_numpy(place).to(model.device).split(at_once) for place in places)
        sides = queries.sides[one], gallery.sides[other]
        jobs = ((model, *sides, *batch) for batch in zip(ones, others, strict=True))
        made = torch.cat(list(_in_threads(model, _logits, jobs)))
        found[torch.tensor(numbers, device=model.device)] = made[: len(numbers)]
    scores = found.cpu().numpy()
    if not np.isfinite(scores).all():
        number = int(np.argmin(np.isfinite(scores)))
        raise RemeasureError(
            f"pair {pairs[number].tolist()}: its logit is {scores[number]} in {model.dtype}; score with "
            "numeric: fp32"
        )
    return scores


def _at_once(model: Ames, n_tokens: int) -> int:
    return max(1, _TOKENS_AT_ONCE[model.device.split(":")[0]] // n_tokens)


def _in_threads(model: Ames, work: Callable[..., T], jobs: Iterable[tuple]) -> Iterator[T]:
    """Yield what a function makes of every batch, in order; each thread computes by itself.

    Threads of torch's own would wait for each other after every operation, which takes most of the time where
    batches are small or other work needs the processor.
    """
    torch = torch_module.load()

    def one(job: tuple) -> T:
        with torch.inference_mode():
            return work(*job)

    if model.threads == 1 or model.device != "cpu":
        yield from map(one, jobs)
        return
    with ThreadPoolExecutor(model.threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield from pool.map(one, jobs)


def _filled(rows: np.ndarray, at_once: int) -> np.ndarray:
    """Return rows filled up with the last one to whole batches: all of them have one size."""
    return np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % at_once)])


def _logits(model: Ames, queries: Side, gallery: Side, ones: "Tensor", others: "Tensor") -> "Tensor":
    return model.logits(queries.take(ones), gallery.take(others))
