"""Trains a head: draws photographs, ArcFace, AdamW with a cosine, and keeps the epoch that measures best.

Source:
    Landmarks card, section 1.5. Where the published text is silent: weight decay on all parameters, the rate
    set anew every epoch, no warm-up, an epoch is as many draws as there are photographs.
"""

import logging
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import torch_module
from remeasure.instances.heads import arcface, network, sampling
from remeasure.instances.heads.checkpoint import Epoch, Folder
from remeasure.instances.heads.sampling import Chosen
from remeasure.instances.heads.settings import HeadSettings
from remeasure.instances.heads.vectors import OnDevice
from remeasure.progress import Progress

if TYPE_CHECKING:
    from torch import nn

log = logging.getLogger("remeasure.train_head")
Measure = Callable[["nn.Sequential"], float]
_HEAD, _BEST, _FIRST, _SECOND, _CLASSES = "head.", "best.", "first.", "second.", "classes"


class Trained(NamedTuple):
    """A head at its best epoch."""

    tensors: dict[str, np.ndarray]
    best_epoch: int
    history: tuple[Epoch, ...]


def use(threads: int) -> str:
    """Set torch up so that equal arguments give equal numbers on one device; return the device's name.

    Raises:
        RemeasureError: torch is missing.
    """
    # Read when CUDA starts; without it cuBLAS adds up in an order that differs from call to call.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch = torch_module.load()
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    return "cuda" if torch.cuda.is_available() else "cpu"


def rate_of(epoch: int, settings: HeadSettings) -> float:
    """Return the learning rate of an epoch from 0: half a cosine over all epochs, from the whole rate."""
    return settings.learning_rate * (1 + math.cos(math.pi * epoch / settings.epochs)) / 2


def best_of(history: tuple[Epoch, ...]) -> int:
    """Return the epoch whose value is highest, the first of equals."""
    return max(history, key=lambda one: (one.value, -one.epoch)).epoch


def is_over(history: tuple[Epoch, ...], settings: HeadSettings) -> bool:
    """Return whether all epochs were gone through, or too many of them in a row brought nothing."""
    if not history:
        return False
    last = history[-1].epoch
    return last + 1 >= settings.epochs or last - best_of(history) >= settings.patience


@dataclass
class Training:
    """One head in training.

    Args:
        vectors: of all photographs.
        chosen: those that it is trained on.
        settings: of the head.
        device: torch's name of it.
    """

    vectors: OnDevice
    chosen: Chosen
    settings: HeadSettings
    device: str

    def __post_init__(self) -> None:
        torch = torch_module.load()
        s = self.settings
        # Drawn on the processor, so that a seed begins alike on every device.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(s.seed)
            head = network.build(s.backbone.dim, s.hidden, s.dim)
            classes = torch.empty(self.chosen.n_classes, s.dim)
            torch.nn.init.xavier_uniform_(classes)
        self.head = head.to(self.device)
        self.classes = classes.to(self.device).requires_grad_()
        self._optimiser = torch.optim.AdamW(
            [*self.head.parameters(), self.classes], lr=s.learning_rate, weight_decay=s.weight_decay
        )
        self._cumulative = sampling.cumulative_weights(self.chosen.label)
        self.best: dict[str, np.ndarray] = {}
        self.history: tuple[Epoch, ...] = ()

    def run(self, measure: Measure, kept: Folder | None, name: str) -> Trained:
        """Train until nothing gets better, from where a killed run left off.

        Args:
            measure: what chooses the epoch; called with the head in its evaluation mode.
            kept: where states are kept; None keeps none.
            name: of this training, for the log.

        Raises:
            RemeasureError: the loss is not finite any more.
        """
        if kept is not None and (found := kept.read()) is not None:
            self._restore(*found)
            log.info("%s: goes on after epoch %d", name, self.history[-1].epoch)
        while not is_over(self.history, self.settings):
            epoch = len(self.history)
            loss = self._pass(epoch, name)
            self.head.eval()
            value = measure(self.head)
            one = Epoch(epoch=epoch, rate=rate_of(epoch, self.settings), loss=loss, value=value)
            self.history = (*self.history, one)
            if best_of(self.history) == epoch:
                self.best = network.tensors(self.head)
            if kept is not None:
                kept.write(self.history, self._state())
            log.info("%s: epoch %d loss %.4f mAP %.4f", name, epoch, loss, value)
        return Trained(self.best, best_of(self.history), self.history)

    def _pass(self, epoch: int, name: str) -> float:
        """Go through an epoch's draws; return the mean loss of its batches."""
        s, torch = self.settings, torch_module.load()
        self.head.train()
        for group in self._optimiser.param_groups:
            group["lr"] = rate_of(epoch, s)
        drawn = sampling.draw(self._cumulative, s.seed, epoch)
        scales = (
            sampling.draw_scales(len(drawn), self.vectors.n_scales, s.seed, epoch)
            if s.train_scale == "random"
            else None
        )
        total, begin = torch.zeros((), dtype=torch.float64, device=self.device), 0
        progress = Progress(log, f"{name}: epoch {epoch}, draws", len(drawn))
        for batch in sampling.batches(drawn, s.batch):
            here = None if scales is None else scales[begin : begin + len(batch)]
            begin += len(batch)
            total += len(batch) * self._step(batch, here)
            progress.add(len(batch))
        loss = float(total) / len(drawn)
        if not math.isfinite(loss):
            raise RemeasureError(
                f"{name}: the loss of epoch {epoch} is {loss}, expected a finite number; lower learning_rate "
                f"of head {s.name}"
            )
        return loss

    def _step(self, batch: np.ndarray, scales: np.ndarray | None):
        """Take one step; return the loss before it, which stays on the device."""
        s, torch = self.settings, torch_module.load()
        labels = torch.from_numpy(self.chosen.label[batch]).to(self.device)
        self._optimiser.zero_grad()
        loss = arcface.loss(
            self.head(self.vectors.batch(self.chosen.row[batch], scales)),
            self.classes,
            labels,
            margin=s.margin,
            scale=s.scale,
            label_smoothing=s.label_smoothing,
        )
        loss.backward()
        self._optimiser.step()
        return loss.detach().double()

    # -- what is kept of it --------------------------------------------------------------------------------

    def _parameters(self) -> dict[str, "nn.Parameter"]:
        return dict(self.head.named_parameters()) | {_CLASSES: self.classes}

    def _state(self) -> dict[str, np.ndarray]:
        found = {_HEAD + name: value for name, value in network.tensors(self.head).items()}
        found[_CLASSES] = self.classes.detach().cpu().numpy()
        found |= {_BEST + name: value for name, value in self.best.items()}
        for name, parameter in self._parameters().items():
            kept = self._optimiser.state[parameter]
            found[_FIRST + name] = kept["exp_avg"].cpu().numpy()
            found[_SECOND + name] = kept["exp_avg_sq"].cpu().numpy()
            found[f"step.{name}"] = kept["step"].reshape(1).cpu().numpy()
        return found

    def _restore(self, state, tensors: dict[str, np.ndarray]) -> None:
        torch = torch_module.load()
        self.history = state.history
        self.best = {
            name.removeprefix(_BEST): value for name, value in tensors.items() if name.startswith(_BEST)
        }
        network.load(
            self.head,
            {name.removeprefix(_HEAD): value for name, value in tensors.items() if name.startswith(_HEAD)},
        )
        with torch.no_grad():
            self.classes.copy_(torch.from_numpy(tensors[_CLASSES].copy()))
        for name, parameter in self._parameters().items():
            moments = {
                "exp_avg": tensors[_FIRST + name],
                "exp_avg_sq": tensors[_SECOND + name],
            }
            self._optimiser.state[parameter] = {
                key: torch.from_numpy(value.copy()).to(self.device) for key, value in moments.items()
            } | {"step": torch.from_numpy(tensors[f"step.{name}"].copy()).reshape(())}
