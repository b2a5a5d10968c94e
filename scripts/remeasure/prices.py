"""What hosted models charge: the rows of ``config/prices.yaml``."""

import datetime
import functools
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from remeasure.errors import RemeasureError, did_you_mean
from remeasure.executors import Price
from remeasure.fingerprint import SCRIPTS
from remeasure.yaml_files import Settings, convert, read_yaml

PRICES = SCRIPTS.parent / "config" / "prices.yaml"
Usd = Annotated[float, Meta(ge=0, lt=1e6)]


class PriceRow(Settings, kw_only=True):
    """One row: US dollars per million tokens."""

    input_usd_per_mtok: Usd
    output_usd_per_mtok: Usd
    batch_input_usd_per_mtok: Usd | None = None
    """Null where the endpoint has no batch service."""
    batch_output_usd_per_mtok: Usd | None = None
    as_of: datetime.date
    """The day for which the source was read, or an earlier one."""
    source: Annotated[str, Meta(min_length=1)]
    """Address of the page."""


@functools.cache
def load(path: Path = PRICES) -> dict[str, PriceRow]:
    """Load the price table by name.

    Raises:
        RemeasureError: missing file, a row without date or source, a price below 0; names row and field.
    """
    return {
        str(name): convert(row, PriceRow, Path(f"{path}: {name}")) for name, row in read_yaml(path).items()
    }


def row_of(name: str, place: str, path: Path = PRICES) -> PriceRow:
    """Return a row by name.

    Args:
        name: name of the row.
        place: which setting names it, for the error.
        path: the table.

    Raises:
        RemeasureError: there is none of that name.
    """
    table = load(path)
    if name not in table:
        raise RemeasureError(
            f"{place}: price {name!r} is not in {path.name}{did_you_mean(name, table)}; there are: "
            f"{', '.join(table)}; correct the name or add a row with date and source"
        )
    return table[name]


def price_of(row: PriceRow, batch: bool, place: str) -> Price:
    """Return what a call costs.

    Args:
        row: the price row.
        batch: whether calls go through a batch service.
        place: which setting names the row, for the error.

    Raises:
        RemeasureError: a batch service is used and the row has no batch price.
    """
    if not batch:
        return Price(input_usd_per_mtok=row.input_usd_per_mtok, output_usd_per_mtok=row.output_usd_per_mtok)
    if row.batch_input_usd_per_mtok is None or row.batch_output_usd_per_mtok is None:
        raise RemeasureError(
            f"{place}: the row has no batch prices, but the model is asked in batches; add "
            "batch_input_usd_per_mtok and batch_output_usd_per_mtok to it"
        )
    return Price(
        input_usd_per_mtok=row.batch_input_usd_per_mtok, output_usd_per_mtok=row.batch_output_usd_per_mtok
    )
