"""What is reported of a head: counts, epochs, and its mAP on benchmarks beside that of the backbone alone."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from remeasure.instances import torch_module
from remeasure.instances.heads import model, network, selection
from remeasure.instances.heads.checkpoint import Epoch
from remeasure.instances.heads.sampling import Chosen
from remeasure.instances.heads.selection import Bench, HeldOut
from remeasure.instances.heads.settings import HeadSettings


def held_out(held: HeldOut, rest: Chosen, history: tuple[Epoch, ...]) -> dict[str, Any]:
    """Return what is known of the classes that were held out, and how well they are told apart."""
    return {
        "rows": len(held.label),
        "classes": int(held.label.max()) + 1,
        "queries": len(held.queries),
        "trained_rows": len(rest.row),
        "trained_classes": rest.n_classes,
        "map": max(one.value for one in history),
        "map_of_backbone": number(held.measure(lambda vectors: vectors)),
    }


def number(value: float) -> float | None:
    """Return a number as JSON has it: null for none."""
    return None if math.isnan(value) else value


def report(
    settings: HeadSettings,
    heads: Mapping[str, Mapping[str, np.ndarray]],
    facts: Mapping[str, Any],
    benches: Mapping[str, Bench],
    device: str,
) -> dict[str, Any]:
    """Return the report of a head.

    Args:
        settings: of the head.
        heads: its tensors by how the epoch was chosen.
        facts: of its training; of one that was there already only what was left out of its file.
        benches: by gallery; numbers are of benchmarks alone, without distractors.
        device: where it is computed.
    """
    torch = torch_module.load()
    sizes = (settings.backbone.dim, settings.hidden, settings.dim)
    ways = {"backbone": lambda vectors: vectors}
    for name, tensors in heads.items():
        head = network.build(*sizes)
        network.load(head, tensors)
        ways[name] = selection.projection(head.to(device).eval(), device)
    return {
        "head": settings.name,
        "seed": settings.seed,
        "decontaminated": settings.decontaminated,
        "backbone": settings.backbone.name,
        "n_parameters": model.n_parameters(*sizes),
        "device": device,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "select_on": settings.select_on,
        "galleries": {
            gallery: {
                way: {name: number(value) for name, value in bench.measure(project).items()}
                for way, project in ways.items()
            }
            for gallery, bench in benches.items()
        },
        **facts,
    }


def line(report: Mapping[str, Any]) -> str:
    """Return a report in some words, for the last line of a log."""
    found = [f"best_epoch {way}={epoch}" for way, epoch in report.get("best_epoch", {}).items()]
    for gallery, ways in report["galleries"].items():
        found += [f"{gallery} medium {way}={_short(maps['medium'])}" for way, maps in ways.items()]
    return ", ".join(found)


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"
