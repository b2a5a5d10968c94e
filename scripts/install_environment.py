"""Install the Python environment of a system from a file of pins with hashes."""

import argparse
from pathlib import Path

import msgspec

from remeasure import cli, installing, options, provenance
from remeasure.fingerprint import SCRIPTS


def work(args: argparse.Namespace) -> None:
    """Install, then write the record."""
    settings = options.decode(args.settings, installing.Settings)
    python = installing.install(settings, SCRIPTS.parent, args.record.with_suffix(""))
    provenance.write_stage(
        args.record,
        stage="install_environment",
        script="install_environment.py",
        settings=msgspec.to_builtins(settings),
        inputs=[],
        outputs=[],
        facts={"python": python, "version": installing.version_text(python)},
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: lock, sha256, python")
    parser.add_argument(
        "--record", type=Path, required=True, help="stage record, .json; the folder is beside it"
    )
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
