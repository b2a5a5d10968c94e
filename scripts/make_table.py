"""Make a table from graded cells: paper's layout, cells, differences, page, picture, provenance."""

import argparse
import importlib.metadata
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from remeasure import cli, fingerprint, jsonl
from remeasure.files import sha256_file, write_text
from remeasure.options import decode
from remeasure.tables import (
    blocks,
    breakdown,
    chain,
    contrast_rows,
    contrasts,
    csv_text,
    drift,
    failures,
    figure,
    inputs,
    limits,
    markdown,
    published,
    servers,
    spread,
    wide,
)
from remeasure.tables import cells as cell_rows
from remeasure.tables.chain import CellChain, Provenance, Value
from remeasure.tables.comparability import comparability
from remeasure.tables.inputs import Cell
from remeasure.tables.markdown_blocks import left_out_sentence
from remeasure.tables.published import Published
from remeasure.tables.settings import CellKey, NumberKey, TableSettings

log = logging.getLogger("remeasure.make_table")
PACKAGES = ("matplotlib", "msgspec", "numpy")


def trace(cells: Sequence[Cell], records: chain.Records, settings: TableSettings) -> list[CellChain]:
    """Return the chain of every cell, from its graded units and numbers to the sources."""
    found = []
    for cell in cells:
        score = cell.score
        found.append(
            CellChain(
                bench=score.bench,
                arm=score.arm,
                model=score.model,
                grader=score.grader,
                headline=score.headline,
                numbers={name: _value(cell, name, settings) for name in score.metrics},
                score=str(cell.score_path),
                chain=chain.follow([str(cell.score_path), str(cell.graded_path)], records),
            )
        )
    return found


def _value(cell: Cell, metric: str, settings: TableSettings) -> Value:
    number = cell.score.metrics[metric].published
    return Value(value=number.value, n=number.n, printed=wide.printed(cell, metric, settings))


def wide_file(
    cells: Mapping[CellKey, Cell], printed: Mapping[NumberKey, Published], settings: TableSettings
) -> tuple[list[str], list[dict]]:
    """Return header and rows of the paper's layout, whole or in blocks."""
    if settings.blocks:
        return blocks.columns(settings), blocks.wide_rows(wide.first_time(cells), printed, settings)
    return wide.columns(settings), wide.rows(cells, settings)


def over_limit(cells: Mapping[CellKey, Cell], settings: TableSettings) -> limits.OverLimit | None:
    """Return which cells have more failed answers than the study allows."""
    return limits.over(
        [(cell.score_path, cell.score) for cell in cells.values()],
        settings.max_failed_share,
        settings.allow_failures,
        lambda score: settings.name(CellKey(score.bench, score.arm, score.model)),
    )


def work(args: argparse.Namespace) -> None:
    """Read, compare, write."""
    settings = decode(args.settings, TableSettings)
    log.info("%s of run %s from %d cells", settings.table, settings.run, len(args.scores))
    cells = inputs.load(settings, args.scores, args.graded)
    printed = published.of_numbers(args.published, settings)
    compared = contrasts.compare_all(cells, settings)
    records = chain.load_records(args.stages)
    chains = trace(list(cells.values()), records, settings)
    hashes = {link.path: sha256_file(Path(link.path)) for cell in chains for link in cell.chain[:2]}
    for cell in chains:
        chain.check(cell.chain[:2], hashes)

    over = over_limit(cells, settings)
    told = over.sentence if over else None
    header, rows = wide_file(cells, printed, settings)
    write_text(args.out_wide, csv_text.render(header, rows, told))
    answered = servers.of_cells(chains, records)
    header = cell_rows.columns(cells)
    rows = cell_rows.rows(cells, printed, settings, answered, header)
    write_text(args.out_cells, csv_text.render(header, rows, told))
    rows = [contrast_rows.row(contrast, settings) for contrast in compared]
    write_text(args.out_contrasts, csv_text.render(contrast_rows.COLUMNS, rows, told))
    drifts = drift.of_table(cells, settings)
    rows = [drift.row(one, settings) for one in drifts]
    write_text(args.out_drift, csv_text.render(drift.COLUMNS, rows, told))
    spreads = spread.of_table(cells, settings)
    rows = [spread.row(one, settings) for one in spreads]
    write_text(args.out_spread, csv_text.render(spread.COLUMNS, rows, told))
    parts = list(breakdown.parts(wide.first_time(cells), settings))
    rows = [breakdown.row(part, settings) for part in parts]
    write_text(args.out_breakdown, csv_text.render(breakdown.COLUMNS, rows, told))
    write_text(args.out_failures, csv_text.render(failures.COLUMNS, failures.rows(cells), told))
    write_text(
        args.out_markdown,
        markdown.first_line(told)
        + markdown.render(
            cells, printed, compared, parts, settings, drifts, answered, records.stages.values(), spreads
        ),
    )
    write_text(args.out_figure, figure.render(wide.first_time(cells), printed, settings, compared, told))
    outputs = [args.out_wide, args.out_cells, args.out_contrasts, args.out_breakdown, args.out_drift]
    outputs += [args.out_spread, args.out_failures]
    outputs += [args.out_markdown, args.out_figure]
    document = Provenance(
        table=settings.table,
        run=settings.run,
        title=settings.title,
        run_title=settings.run_title,
        unit=settings.unit,
        settings=msgspec.to_builtins(settings),
        code=fingerprint.of_script("make_table.py"),
        packages={name: importlib.metadata.version(name) for name in PACKAGES},
        published={args.published.name: sha256_file(args.published)},
        outputs={str(path): sha256_file(path) for path in outputs},
        cells=tuple(chains),
        stages=chain.notes(chains, records),
        over_limit=over,
        left_out=left_out_sentence(settings),
        blocks=tuple(blocks.texts(wide.first_time(cells), printed, settings)),
        spread=tuple(spread.texts(spreads, settings)),
        comparability=" ".join(comparability(cells, printed, settings)).rstrip(),
    )
    jsonl.write_json(args.out_provenance, document)
    if over:
        log.warning("%s", over.sentence)
    log.info(
        "%s: %d cells, %d differences, %d stages behind them",
        args.out_wide,
        len(cells),
        len(compared),
        len(document.stages),
    )


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="settings of the table, JSON")
    parser.add_argument("--published", type=Path, required=True, help="config/published/<study>.csv")
    parser.add_argument("--scores", type=Path, nargs="+", required=True, help="score.json of every cell")
    parser.add_argument("--graded", type=Path, nargs="+", required=True, help="graded.jsonl of every cell")
    parser.add_argument(
        "--stages", type=Path, nargs="+", required=True, help="all stage records behind the cells"
    )
    parser.add_argument("--out-wide", type=Path, required=True, help="table, paper's layout, CSV")
    parser.add_argument("--out-cells", type=Path, required=True, help="one row per cell and metric, CSV")
    parser.add_argument(
        "--out-contrasts", type=Path, required=True, help="differences between arms or models, CSV"
    )
    parser.add_argument(
        "--out-breakdown", type=Path, required=True, help="every number by parts of its units, CSV"
    )
    parser.add_argument(
        "--out-drift", type=Path, required=True, help="how far repeated numbers and differences move, CSV"
    )
    parser.add_argument("--out-spread", type=Path, required=True, help="how far numbers move over seeds, CSV")
    parser.add_argument(
        "--out-failures", type=Path, required=True, help="one row per answer that failed, CSV"
    )
    parser.add_argument("--out-markdown", type=Path, required=True, help="page for people")
    parser.add_argument(
        "--out-provenance", type=Path, required=True, help="chains of files behind every number, JSON"
    )
    parser.add_argument("--out-figure", type=Path, required=True, help="picture, SVG")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
