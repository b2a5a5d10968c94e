"""Compare what a whole run is estimated to cost with its limit, before anything of it is sent."""

import argparse
import logging
import math
from pathlib import Path

from remeasure import cli, jsonl, options
from remeasure.errors import RemeasureError
from remeasure.estimates import Estimate
from remeasure.records import Record

log = logging.getLogger("remeasure.check_estimate")


class CheckSettings(Record, kw_only=True):
    """Settings of ``check_estimate``."""

    run: str
    estimate_usd: float
    """The run's limit."""


def check(found: dict[str, Estimate], settings: CheckSettings) -> float:
    """Return what the requests that have no answer yet are expected to cost together, US dollars.

    Raises:
        RemeasureError: more than the limit, or an estimate that has no amount.
    """
    unknown = [path for path, one in found.items() if one.usd is None]
    if unknown:
        raise RemeasureError(
            f"{unknown[0]}: has no amount ({'; '.join(found[unknown[0]].notes) or 'no price'}), and run "
            f"{settings.run} has limits.estimate_usd {settings.estimate_usd:g}; nothing was sent: give the "
            "model `price` and `image_tokens`, or take the limit out"
        )
    amounts = [one.usd for one in found.values() if one.usd is not None]
    expected = math.fsum(amount.expected for amount in amounts)
    if expected > settings.estimate_usd:
        low, high = (math.fsum(getattr(amount, name) for amount in amounts) for name in ("low", "high"))
        raise RemeasureError(
            f"run {settings.run} is estimated at {expected:.2f} USD ({low:.2f} to {high:.2f}), above "
            f"limits.estimate_usd {settings.estimate_usd:g}; nothing was sent: results/estimate.csv says "
            "what costs how much; raise the limit, or ask fewer items"
        )
    return expected


def work(args: argparse.Namespace) -> None:
    """Read, compare, write."""
    settings = options.decode(args.settings, CheckSettings)
    found = {str(path): jsonl.read_json(path, Estimate) for path in args.estimates}
    expected = check(found, settings)
    jsonl.write_json(
        args.out, {"run": settings.run, "limit_usd": settings.estimate_usd, "expected_usd": expected}
    )
    log.info("run %s: %.2f USD of %g USD at most", settings.run, expected, settings.estimate_usd)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: run, estimate_usd")
    parser.add_argument(
        "--estimates", type=Path, nargs="+", required=True, help="estimate.json of every cell"
    )
    parser.add_argument("--out", type=Path, required=True, help="written where the run may be asked, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
