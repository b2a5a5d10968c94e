"""Stage records: which bytes went in, which came out, under which settings and versions."""

import importlib.metadata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from remeasure import fingerprint, jsonl
from remeasure.files import sha256_of
from remeasure.records import Stage


def write_stage(
    path: Path,
    *,
    stage: str,
    script: str,
    settings: dict[str, Any],
    inputs: Iterable[Path],
    outputs: Iterable[Path],
    packages: Iterable[str] = (),
    counts: dict[str, int] | None = None,
    facts: dict[str, Any] | None = None,
    also: tuple[str, ...] = (),
    known: Mapping[str, str] | None = None,
) -> None:
    """Write the record of a finished stage beside its outputs; call it last.

    Args:
        path: the record, a ``.json`` file that is a declared output of the same rule.
        stage: name of the rule.
        script: file name below ``scripts/``, for the fingerprint of the code.
        settings: the resolved settings that the stage read, and only those.
        inputs: files that the result depends on, or folders.
        outputs: files that the stage wrote, without the record itself.
        packages: distributions whose versions can change the result.
        counts: how many items ended how.
        facts: anything else worth keeping that is the same in every run on one machine; no times.
        also: modules that the script loads by name, for the fingerprint of the code.
        known: SHA-256 of files that the caller or another record knows, by path: they are not read again.
    """
    jsonl.write_json(
        path,
        Stage(
            stage=stage,
            settings=settings,
            code=fingerprint.of_script(script, also=also),
            packages={name: importlib.metadata.version(name) for name in packages},
            inputs={str(name): (known or {}).get(str(name)) or sha256_of(name) for name in inputs},
            outputs={str(name): (known or {}).get(str(name)) or sha256_of(name) for name in outputs},
            counts=counts or {},
            facts=facts or {},
        ),
    )
