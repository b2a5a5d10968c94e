"""Fill a database of a system with the documents of a dataset, or check one that is there already.

What a killed attempt has done is kept beside the database and used.
"""

import argparse
from pathlib import Path

import msgspec

from remeasure import cli, options, provenance
from remeasure.executors import Part
from remeasure.systems import ingesting


def work(args: argparse.Namespace) -> None:
    """Fill or check, then write the record."""
    settings = options.decode(args.settings, ingesting.Settings)
    embedder = options.decode(args.way, Part, "--way")
    facts = ingesting.Ingest(settings, embedder, args.documents, args.environment, args.folder).run()
    provenance.write_stage(
        args.record,
        stage="ingest_documents",
        script="ingest_documents.py",
        settings=msgspec.to_builtins(settings),
        inputs=[path for path in (args.documents, args.environment) if path is not None],
        outputs=[],
        counts={"documents": facts.n_documents, "chunks": facts.n_chunks, "failed": len(facts.failed)},
        facts=msgspec.to_builtins(facts),
    )


def main(argv=None) -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="JSON: adapter, embedder, options, …")
    parser.add_argument("--way", required=True, help="JSON: how the embedder is reached")
    parser.add_argument("--documents", type=Path, required=True, help="documents.jsonl")
    parser.add_argument("--environment", type=Path, help="record of the system's environment")
    parser.add_argument(
        "--folder", type=Path, required=True, help="the database, with what is noted beside it"
    )
    parser.add_argument("--record", type=Path, required=True, help="stage record, .json")
    return cli.run(parser, work, argv, keeps=True)


if __name__ == "__main__":
    raise SystemExit(main())
