"""Torch, which only the study of photographs needs: imported when a step asks for it, never before."""

from types import ModuleType

from remeasure.errors import RemeasureError


def load() -> ModuleType:
    """Return the module ``torch``.

    Raises:
        RemeasureError: it is not installed.
    """
    try:
        import torch
    except ImportError:
        raise RemeasureError("torch is missing: run make landmarks (or make setup-torch)") from None
    return torch
