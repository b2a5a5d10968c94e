"""The table for people: paper's layout first, then intervals, differences, failures."""

from collections.abc import Iterable, Mapping, Sequence

from remeasure.tables import cells as cell_rows
from remeasure.tables import wide
from remeasure.tables.contrasts import Contrast
from remeasure.tables.csv_text import decimals
from remeasure.tables.inputs import Cell, TableSettings
from remeasure.tables.published import Published
from remeasure.tables.servers import Servers, warning

Cells = Mapping[tuple[str, str], Cell]
Printed = Mapping[tuple[str, str], Published]


def grid(header: Sequence[str], rows: Iterable[Sequence[str]], n_text: int) -> str:
    """Return a Markdown table; the first ``n_text`` columns are aligned left, the others right."""
    rule = [":--" if place < n_text else "--:" for place in range(len(header))]
    escaped = [[field.replace("|", "\\|") for field in row] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in [list(header), rule, *escaped]) + "\n"


def _titles(settings: TableSettings) -> tuple[dict[str, str], dict[str, str]]:
    return {row.bench: row.title for row in settings.rows}, {
        column.arm: column.title for column in settings.columns
    }


def _span(interval: tuple[float, float] | None, factor: float) -> str:
    if interval is None:
        return "undefined"
    return f"{decimals(interval[0] * factor, 1)} to {decimals(interval[1] * factor, 1)}"


def _p(value: float | None) -> str:
    return "–" if value is None else "<0.0001" if value < 0.0001 else f"{value:.4f}"


def paper_layout(cells: Cells, settings: TableSettings) -> str:
    """Return the paper's layout with the grader beside every bench."""
    rows = []
    for row in settings.rows:
        here = [cells[row.bench, column.arm] for column in settings.columns]
        graders = sorted({cell.score.grader for cell in here})
        rows.append([row.title, ", ".join(graders), *(wide.printed(cell, settings) for cell in here)])
    return grid(["Bench", "Grader", *(column.title for column in settings.columns)], rows, 2)


def cell_table(cells: Cells, published: Printed, settings: TableSettings) -> str:
    """Return one line per cell: interval, strict reading, counts, published value, verdict."""
    benches, arms = _titles(settings)
    rows = []
    for (bench, arm), cell in cells.items():
        score = cell.score
        there = published.get((bench, arm))
        strict = None if score.value_strict is None else score.value_strict * settings.factor
        recall = None if score.recall_at_k is None else score.recall_at_k * settings.factor
        rows.append(
            [
                benches[bench],
                arms[arm],
                wide.printed(cell, settings),
                _span(score.interval, settings.factor),
                decimals(strict, 1) or "none graded",
                f"{score.n_graded} of {score.n}",
                str(score.n_differ),
                decimals(recall, 1) or "–",
                decimals(there.value, 1) or "" if there else "–",
                cell_rows.verdict(cell, there, settings).verdict,
            ]
        )
    header = [
        "Bench",
        "Arm",
        "Value",
        "95 % interval",
        "Strict",
        "Graded",
        "Differ",
        "Recall",
        "Paper",
        "Verdict",
    ]
    return grid(header, rows, 2)


def contrast_table(contrasts: Sequence[Contrast], settings: TableSettings) -> str:
    """Return one line per difference."""
    benches, arms = _titles(settings)
    rows = [
        [
            benches[contrast.bench],
            arms[contrast.arm],
            arms[contrast.against],
            "undefined" if contrast.difference is None else f"{contrast.difference * settings.factor:+.1f}",
            _span(contrast.interval, settings.factor),
            str(contrast.n_pairs),
            "–" if contrast.n_only_arm is None else f"{contrast.n_only_arm} : {contrast.n_only_against}",
            _p(contrast.mcnemar_p),
            _p(contrast.holm_p),
        ]
        for contrast in contrasts
    ]
    header = [
        "Bench",
        "Arm",
        "Against",
        "Points",
        "95 % interval",
        "Pairs",
        "Only one right",
        "McNemar p",
        "Holm p",
    ]
    return grid(header, rows, 3)


def failure_table(cells: Cells, settings: TableSettings) -> str:
    """Return the failures of the cells that have some, or a sentence if none has."""
    benches, arms = _titles(settings)
    rows = []
    for (bench, arm), cell in cells.items():
        counts = cell_rows.failures(cell)
        if any(counts.values()):
            rows.append([benches[bench], arms[arm], str(cell.score.n), *map(str, counts.values())])
    if not rows:
        return "Every item of every cell was answered, and every judge's reply could be read.\n"
    names = [name.replace("_", " ").capitalize() for name in cell_rows.FAILURES]
    table = grid(["Bench", "Arm", "Items", *names], rows, 2)
    rest = len(cells) - len(rows)
    return table + (f"\nThe other {rest} cells have none.\n" if rest else "")


def comparability(cells: Cells, published: Printed, settings: TableSettings) -> str:
    """Say in one sentence whether the table may be compared with the paper."""
    fields = sorted(
        {
            field
            for key, cell in cells.items()
            if key in published
            for field in cell_rows.differing(cell.score, published[key], settings)
        }
    )
    if settings.not_comparable:
        return f"**Not comparable with the paper: {settings.run_title}** (differs in {', '.join(fields)})."
    if fields:
        return f"Some cells are not comparable with the paper; they differ in {', '.join(fields)}."
    return "The protocol fields on record are those of the paper."


def render(
    cells: Cells,
    published: Printed,
    contrasts: Sequence[Contrast],
    settings: TableSettings,
    servers: Mapping[tuple[str, str], Servers],
) -> str:
    """Return the whole page."""
    readers = sorted({cell.score.reader for cell in cells.values()})
    judges = sorted({cell.score.judge for cell in cells.values() if cell.score.judge})
    methods = sorted({cell.score.interval_method for cell in cells.values()})
    ks = sorted({cell.score.k for cell in cells.values() if cell.score.k is not None})
    parts = [
        f"# {settings.title}\n",
        f"Run `{settings.run}`, table `{settings.table}`, in {settings.unit}. Reader: {'; '.join(readers)}. "
        f"Judge: {'; '.join(judges) or 'none'}.\n",
        comparability(cells, published, settings) + "\n",
        *filter(None, [warning(servers)]),
        paper_layout(cells, settings),
        "## Cells\n",
        "*Value* repeats the original's grading, flaws included; *strict* corrects it and leaves items "
        "without an answer out; *differ* counts the items whose score is not the same in both. *Recall* is "
        "the share of items with a page that holds the answer among the first "
        f"{', '.join(map(str, ks)) or 'few'} retrieved. "
        f"Intervals: {'; '.join(methods)}.\n",
        cell_table(cells, published, settings),
        "## Differences between arms\n",
        "On the same items; bootstrap over groups of items that belong together, McNemar's exact test over "
        f"single items, Holm over all {len(contrasts)} differences shown.\n",
        contrast_table(contrasts, settings),
        "## Failures\n",
        failure_table(cells, settings),
    ]
    return "\n".join(parts)
