"""Write what a reader is asked in one cell, as a request file that can be looked at before it is sent."""

import argparse
from pathlib import Path

from remeasure import building, cells, cli, evidence, items, jsonl, options, prompts, provenance, studies
from remeasure.cells import AskSettings


def work(args: argparse.Namespace) -> None:
    """Read items and evidence, build messages, write requests."""
    settings = options.decode(args.settings, AskSettings)
    study = studies.load(args.study, "messages")
    texts = prompts.load(settings.prompts)
    retrieves = settings.evidence != "none"
    rows: list[tuple[str, int]] = []

    def requests():
        opened = building.open_evidence(settings, args.ranking, args.manifest, args.tiles, args.passages)
        with opened as evidence_of:
            for request, n_parts in building.reader_requests(
                items.read(args.items, with_answers=False), evidence_of, study.messages, settings, texts
            ):
                rows.append((request.custom_id, n_parts))
                yield request
        if retrieves:
            evidence.check_shown(rows, args.ranking, settings.max_share_without_evidence)

    jsonl.write(args.out, requests())
    inputs = [args.items, args.ranking, args.manifest, args.tiles, args.passages]
    provenance.write_stage(
        args.record,
        stage="build_requests",
        script="build_requests.py",
        settings=cells.as_json(settings),
        inputs=[path for path in inputs if path is not None],
        outputs=[args.out],
        counts={
            "requests": len(rows),
            "evidence_parts": sum(n for _, n in rows),
            "items_without_evidence": sum(not n for _, n in rows) if retrieves else 0,
        },
        also=(f"remeasure.studies.{args.study}_messages",),
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: model, evidence, prompts, sampling, …")
    parser.add_argument("--study", required=True, help="name of the study's module")
    parser.add_argument("--items", type=Path, required=True, help="items.jsonl")
    parser.add_argument("--ranking", type=Path, help="ranking.jsonl, for evidence text or tiles")
    parser.add_argument("--manifest", type=Path, help="tiles/manifest.jsonl, for evidence tiles")
    parser.add_argument("--tiles", type=Path, help="tiles/tiles.zip, for evidence tiles")
    parser.add_argument("--passages", type=Path, help="passages.jsonl, for evidence text")
    parser.add_argument("--out", type=Path, required=True, help="requests.jsonl")
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
