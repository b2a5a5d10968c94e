"""Studies: pure functions that say what is special about each published table.

A study has a module per stage, so that a change of one reruns only the stages that use it: ``<study>_items``
(questions from facts, items from an index of images, or ``from_questions`` of a dataset; ``units`` puts a
user's own together), ``<study>_messages`` (what a reader and a judge are
shown; ``check_arm(options, index file, grader)``, if it has one, looks at every arm of a bench when a run is
planned) and, where it lists images, ``<study>_index`` (see ``indexing``), with ``RECORDS``, what stands in
its files. Stages look them up by name.
"""

import importlib
from types import ModuleType

from remeasure.errors import RemeasureError


def load(study: str, part: str) -> ModuleType:
    """Import one module of a study.

    Args:
        study: the study's name.
        part: ``items``, ``messages`` or ``index``.

    Raises:
        RemeasureError: the study has no such module.
    """
    name = f"remeasure.studies.{study}_{part}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise RemeasureError(
            f"study {study!r} has no {part} (scripts/{name.replace('.', '/')}.py); "
            "correct the name or write the module"
        ) from None
