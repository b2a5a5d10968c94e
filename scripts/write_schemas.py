"""Write the JSON schemas of all records and settings files into config/schema/; `--check` only compares."""

import argparse
import inspect
from pathlib import Path

import msgspec

from remeasure import cli, estimates, files, prices, records, settings, studies, table_report
from remeasure.errors import RemeasureError

FOLDER = Path(__file__).resolve().parent.parent / "config" / "schema"


def schemas() -> dict[str, str]:
    """Return file name and text of every schema."""
    kinds = [
        kind
        for _, kind in inspect.getmembers(records, inspect.isclass)
        if issubclass(kind, records.Record) and kind is not records.Record
    ]
    kinds += [settings.Run, settings.Study, estimates.Estimate, prices.PriceRow, table_report.TablesReport]
    for path in sorted(Path(studies.__file__).parent.glob("*_index.py")):
        kinds += studies.load(path.stem.removesuffix("_index"), "index").RECORDS
    texts = {}
    for kind in kinds:
        encoded = msgspec.json.encode(msgspec.json.schema(kind), order="sorted")
        texts[f"{kind.__name__.lower()}.schema.json"] = msgspec.json.format(encoded, indent=2).decode() + "\n"
    return texts


def work(args: argparse.Namespace) -> None:
    """Write or compare."""
    wanted = schemas()
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.schema.json")}
    if args.check:
        stale = sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
        if stale:
            raise RemeasureError(
                f"config/schema: {', '.join(stale)} do not fit the records; run scripts/write_schemas.py"
            )
        return
    for name in there.keys() - wanted.keys():
        (FOLDER / name).unlink()
    for name, text in wanted.items():
        files.write_text(FOLDER / name, text)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 2 where a schema is out of date")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
