"""Write the wording of prompts as files, read out of a Python module without running it."""

import argparse
import logging
from pathlib import Path

from remeasure import cells, cli, jsonl, options, provenance, taken
from remeasure.errors import RemeasureError
from remeasure.files import open_regular, write_text

log = logging.getLogger("remeasure.take_prompts")


def work(args: argparse.Namespace) -> None:
    """Read the module, take the texts out, write them."""
    settings = options.decode(args.settings, taken.TakeSettings)
    outs = {path.stem: path for path in args.out}
    if outs.keys() != settings.prompts.keys() or len(outs) != len(args.out):
        raise RemeasureError(
            f"--out {' '.join(sorted(outs))}: the settings name {' '.join(sorted(settings.prompts))}; "
            "give one file for each"
        )
    try:
        with open_regular(args.module) as stream:
            data = stream.read(taken.MAX_BYTES + 1)
    except OSError as error:
        raise jsonl.unreadable(args.module, error) from None
    texts = taken.take(data, settings, str(args.module))
    for name, path in outs.items():
        write_text(path, texts[name])
    provenance.write_stage(
        args.record,
        stage="take_prompts",
        script="take_prompts.py",
        settings=cells.as_json(settings),
        inputs=[args.module],
        outputs=args.out,
        counts={"prompts": len(texts)},
    )
    log.info("%d prompts taken out of %s, every hash verified", len(texts), args.module)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: module_sha256, prompts, sha256")
    parser.add_argument("--module", type=Path, required=True, help="the Python file")
    parser.add_argument("--out", type=Path, nargs="+", required=True, help="<prompt>.txt, one for each")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
