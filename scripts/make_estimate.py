"""Join the estimates of many cells into one table with a row per cell and model, and a total."""

import argparse
import logging
import math
from pathlib import Path
from typing import Any

from remeasure import cli, files, jsonl, options
from remeasure.errors import RemeasureError
from remeasure.estimates import Estimate
from remeasure.records import Record
from remeasure.tables import csv_text

log = logging.getLogger("remeasure.make_estimate")


class Place(Record, kw_only=True):
    """Where an estimate belongs."""

    table: str
    study: str
    bench: str
    arm: str | None
    """Null for judges that are compared on the answers of several arms."""


class TableSettings(Record, kw_only=True):
    """Settings of ``make_estimate``."""

    run: str
    places: tuple[Place, ...]
    """One for each estimate, in the order of the files."""


def row(place: Place, found: Estimate, run: str) -> dict[str, Any]:
    """Return one estimate as a row; what is not known is null."""
    usd, price = found.usd, found.price
    return {
        "table": place.table,
        "study": place.study,
        "bench": place.bench,
        "arm": place.arm,
        "role": found.role,
        "model": found.model,
        "n_requests": found.n_requests,
        "n_known": found.n_known,
        "n_images": found.n_images,
        "text_tokens": found.text_tokens,
        "text_error": csv_text.decimals(found.text_error, 2),
        "image_tokens": found.image_tokens,
        "output_tokens": found.output_tokens,
        "output_tokens_most": found.output_tokens_most,
        "usd_low": csv_text.decimals(usd.low if usd else None, 4),
        "usd": csv_text.decimals(usd.expected if usd else None, 4),
        "usd_high": csv_text.decimals(usd.high if usd else None, 4),
        "seconds": csv_text.decimals(found.seconds, 1),
        "price": price.name if price else None,
        "price_as_of": price.as_of.isoformat() if price else None,
        "price_source": price.source if price else None,
        "notes": "; ".join(found.notes),
        "run": run,
    }


_SUMMED = ("n_requests", "n_known", "n_images", "text_tokens", "output_tokens", "output_tokens_most")
_EMPTY = ("study", "bench", "arm", "role", "model", "text_error", "price", "price_as_of", "price_source")


def total(found: list[Estimate], run: str) -> dict[str, Any]:
    """Return the last row: sums. One with an unknown part is null; the notes say what the rest makes."""
    amounts = [e.usd for e in found if e.usd is not None]
    times = [e.seconds for e in found if e.seconds is not None]
    image_tokens = [e.image_tokens for e in found if e.image_tokens is not None]
    notes = []
    if not amounts:
        notes.append("no row has an amount")
    elif len(amounts) != len(found):
        part = math.fsum(amount.expected for amount in amounts)
        notes.append(f"{len(found) - len(amounts)} rows without an amount; the others make {part:.4f} USD")
    if not times:
        notes.append("no row has a time")
    elif len(times) != len(found):
        notes.append(f"{len(found) - len(times)} rows without a time; the others take {sum(times):.1f} s")

    def whole(values: list[Any], places: int) -> str | None:
        return csv_text.decimals(math.fsum(values), places) if len(values) == len(found) else None

    sums = {name: sum(getattr(e, name) for e in found) for name in _SUMMED}
    known = {
        "table": "total",
        "image_tokens": whole(image_tokens, 0),
        "usd_low": whole([amount.low for amount in amounts], 4),
        "usd": whole([amount.expected for amount in amounts], 4),
        "usd_high": whole([amount.high for amount in amounts], 4),
        "seconds": whole(times, 1),
        "notes": "; ".join(notes),
        "run": run,
    }
    return dict.fromkeys(_EMPTY) | sums | known


def work(args: argparse.Namespace) -> None:
    """Read, join, write."""
    settings = options.decode(args.settings, TableSettings)
    if len(settings.places) != len(args.estimates):
        raise RemeasureError(
            f"--settings names {len(settings.places)} places, --estimates {len(args.estimates)} files; "
            "give one place for each file"
        )
    found = [jsonl.read_json(path, Estimate) for path in args.estimates]
    rows = [row(place, one, settings.run) for place, one in zip(settings.places, found, strict=True)]
    last = total(found, settings.run)
    columns = list(rows[0]) if rows else list(last)
    files.write_text(args.out, csv_text.render(columns, [*rows, last]))
    amount = f"{last['usd']} USD" if last["usd"] is not None else "no total amount"
    log.info("%s: %d rows, %s", args.out, len(rows), "; ".join(filter(None, (amount, last["notes"]))))


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: run, places")
    parser.add_argument(
        "--estimates", type=Path, nargs="+", required=True, help="estimate.json of every cell"
    )
    parser.add_argument("--out", type=Path, required=True, help="the table, .csv")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
