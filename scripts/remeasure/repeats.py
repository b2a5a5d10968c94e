"""How often a model is asked the same: the further times are told apart by a number behind its name."""

import re

_NAME = re.compile(r"(.*)@([2-9]|[1-9][0-9]+)", re.DOTALL)
PATTERN = "(?:@[1-9][0-9]*)?"
"""What may stand behind a model's name in a path."""


def name(model: str, number: int) -> str:
    """Return what a model is called when it is asked for the n-th time: ``model``, ``model@2``."""
    return model if number == 1 else f"{model}@{number}"


def parse(called: str) -> tuple[str, int]:
    """Return the model and which time it is."""
    found = _NAME.fullmatch(called) if "@" in called else None
    return (found[1], int(found[2])) if found else (called, 1)


def model_of(called: str) -> str:
    """Return the model alone."""
    return parse(called)[0]
