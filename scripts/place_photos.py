"""Say for every query where its labelled photographs stand in the final ranking of a gallery."""

import argparse
import logging
from pathlib import Path
from typing import Any

import msgspec

from remeasure import cli, jsonl, options, provenance
from remeasure.errors import RemeasureError
from remeasure.files import sha256_file
from remeasure.instances import answering, first_file, gallery_order, placing
from remeasure.instances import labels as labels_file
from remeasure.instances.answering import Names, Told
from remeasure.instances.first_file import First
from remeasure.instances.pairs_file import Pairs
from remeasure.instances.placing import Rankings
from remeasure.records import Item

log = logging.getLogger("remeasure.place_photos")


def read_first(args: argparse.Namespace) -> First:
    """Read the first stage: a ranking by itself, or the chosen one of the read-outs."""
    if (args.first is None) == (args.read_outs is None) or (args.read_outs is None) != (args.chosen is None):
        raise RemeasureError(
            "give either --first, or --read-outs with --chosen: what the gallery is ranked by"
        )
    if args.first is not None:
        return first_file.read(args.first)
    chosen = jsonl.read_json(args.chosen, dict[str, Any]).get("chosen")
    if type(chosen) is not int:
        raise RemeasureError(f"{args.chosen}: chosen is {chosen!r}, expected a number; run its target again")
    return first_file.read(args.read_outs, f"r{chosen}_")


def open_all(args: argparse.Namespace, told: Told) -> tuple[Names, Rankings]:
    """Read everything and check that it is about one gallery.

    Raises:
        RemeasureError: a ranking of another gallery, or logits without reranking and the other way round.
    """
    labels = labels_file.read(args.labels)
    names = Names(labels, gallery_order.read(args.order) if args.order else None)
    first = read_first(args)
    if first.n_gallery != names.n or len(first.labelled) != len(labels.qimlist):
        raise RemeasureError(
            f"{args.first or args.read_outs}: ranks {first.n_gallery} photographs for {len(first.labelled)} "
            f"queries, labels and order have {names.n} for {len(labels.qimlist)}; delete it and run its "
            "target again"
        )
    if (told.rerank is None) != (args.pairs is None):
        raise RemeasureError("--pairs belongs to settings with `rerank`, and only to these; correct the call")
    if told.rerank is None:
        return names, Rankings(first, labels, {})
    return names, placing.open_rankings(first, labels, Pairs(args.pairs), told.rerank.shortlist)


def diagnostics(rankings: Rankings, told: Told) -> dict[str, Any]:
    """Return the grid over settings of the fusion; a ranking of one stage has none."""
    if told.rerank is None:
        return {"reported": None, "cells": [], "best": {}}
    fixed = (told.rerank.weight, told.rerank.temperature)
    return placing.grid(rankings, told.rerank.grid_weights, told.rerank.grid_temperatures, fixed)


def work(args: argparse.Namespace) -> None:
    """Read, place, write."""
    told = options.decode(args.settings, Told)
    names, rankings = open_all(args, told)
    items = list(jsonl.unique(jsonl.read(args.items, Item), "item_id", args.items))
    queries = answering.queries_of(items, names.labels)
    files = {"first": args.first, "pairs": args.pairs, "read_outs": args.read_outs, "chosen": args.chosen}
    made_from = {name: sha256_file(path) for name, path in {"labels": args.labels, **files}.items() if path}
    found = [answering.placed(rankings, names, query, told.rerank) for query in queries]
    pairs = zip(items, found, strict=True)
    jsonl.write(args.responses, (answering.response(item, told, made_from, one) for item, one in pairs))
    jsonl.write_json(args.grid, diagnostics(rankings, told))
    inputs = [args.items, args.labels, args.order, *files.values()]
    provenance.write_stage(
        args.record,
        stage="place_photos",
        script="place_photos.py",
        settings=msgspec.to_builtins(told),
        inputs=[path for path in inputs if path],
        outputs=[args.responses, args.grid],
        packages=["h5py", "numpy", "pyarrow"],
        counts={"queries": len(items), "gallery": names.n, "tied": sum(one.n_tied for one in found)},
    )
    log.info("%s: %d queries placed among %d photographs", args.responses, len(items), names.n)


def main(argv=None) -> int:
    """Command-line entry; the rule and a person at a shell use the same words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="how the gallery is ranked, JSON")
    parser.add_argument("--items", type=Path, required=True, help="items.jsonl, one per query")
    parser.add_argument("--labels", type=Path, required=True, help="labels.json of the benchmark")
    parser.add_argument("--order", type=Path, help="order.json of the distractors")
    parser.add_argument("--first", type=Path, help="the first stage, HDF5")
    parser.add_argument("--pairs", type=Path, help="logits of shortlisted pairs, Parquet")
    parser.add_argument("--read-outs", type=Path, help="rankings by the read-outs of an encoder, HDF5")
    parser.add_argument("--chosen", type=Path, help="which of them, JSON")
    parser.add_argument("--responses", type=Path, required=True, help="responses.jsonl")
    parser.add_argument("--grid", type=Path, required=True, help="mAP by settings of the fusion, JSON")
    parser.add_argument("--record", type=Path, required=True, help="stage record, JSON")
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
