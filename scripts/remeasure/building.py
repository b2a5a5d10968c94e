"""From items to request files, for readers and for judges: what all studies have in common."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from remeasure import evidence, jsonl, requests
from remeasure.cells import AskSettings, Cell, JudgeCell, JudgeSettings
from remeasure.errors import RemeasureError
from remeasure.evidence import Evidence
from remeasure.records import ImageRef, Item, Passage, RenderedPage, Request, Response

GRADED = ("answered", "cut_off")


def open_evidence(
    settings: AskSettings,
    items: list[Item],
    ranking: Path | None,
    manifest: Path | None,
    tiles: Path | None,
    passages: Path | None,
) -> Callable[[Item], Evidence]:
    """Return the function that gives each item's evidence; only what the evidence kind needs is read.

    Raises:
        RemeasureError: a file that the kind needs is not given, or does not fit the items.
    """
    kind = settings.evidence
    if kind == "none":
        return lambda item: evidence.NOTHING
    lists = evidence.load_ranking(_needed(ranking, "--ranking", kind), items)
    parts: dict[str, ImageRef] | dict[str, str]
    if kind == "tiles":
        pages = jsonl.read(_needed(manifest, "--manifest", kind), RenderedPage)
        parts = evidence.tile_images(pages, _needed(tiles, "--tiles", kind))
    else:
        parts = evidence.passage_texts(jsonl.read(_needed(passages, "--passages", kind), Passage))
    return lambda item: evidence.shown(
        item, lists.get(item.item_id), kind, settings.n_shown, parts.__getitem__
    )


def _needed(path: Path | None, option: str, kind: str) -> Path:
    if path is None:
        raise RemeasureError(f"evidence {kind!r} needs {option}; give the path")
    return path


def reader_requests(
    items: list[Item],
    evidence_of: Callable[[Item], Evidence],
    messages: Callable[[Item, Evidence, Cell], list[dict[str, Any]]],
    settings: AskSettings,
    texts: dict[str, str],
) -> Iterator[tuple[Request, int]]:
    """Yield each item's request with the number of evidence parts that really stand in its messages.

    Raises:
        RemeasureError: a part of the evidence did not reach the messages (P34, P35); names the item.
    """
    cell = Cell(
        evidence=settings.evidence,
        thinking=settings.thinking,
        instruction=settings.instruction,
        layout=settings.layout,
        prompts=texts,
    )
    for item in items:
        shown = evidence_of(item)
        request = requests.make_request(
            item.item_id,
            requests.Body(
                model=settings.model,
                messages=messages(item, shown, cell),
                max_tokens=settings.max_tokens,
                thinking=settings.thinking,
                **_words(settings.sampling),
            ),
        )
        yield request, _count_shown(item, shown, request)


def _words(sampling) -> dict[str, Any]:
    return {name: getattr(sampling, name) for name in sampling.__struct_fields__}


def _count_shown(item: Item, shown: Evidence, request: Request) -> int:
    """Count the evidence in a request and compare it with what should stand there."""
    sent = [ref.sha256 for ref in requests.image_refs(request.body)]
    expected = [ref.sha256 for ref in (*item.images, *shown.images)]
    text = "\n".join(_texts(request.body))
    lost = [passage for passage in shown.texts if passage not in text]
    if sent != expected or lost:
        raise RemeasureError(
            f"item {item.item_id!r}: {len(sent)} images stand in the request, {len(expected)} belong there "
            f"(or in another order), and {len(lost)} of {len(shown.texts)} texts are missing; "
            "the study's message function loses evidence"
        )
    return len(shown.images) + len(shown.texts)


def _texts(body: dict[str, Any]) -> Iterator[str]:
    for message in body["messages"]:
        if isinstance(message["content"], str):
            yield message["content"]
        else:
            yield from (part["text"] for part in message["content"] if part["type"] == "text")


def judge_requests(
    items: list[Item],
    responses: Path,
    messages: Callable[[Item, Response, JudgeCell], list[dict[str, Any]]],
    settings: JudgeSettings,
    texts: dict[str, str],
) -> Iterator[Request]:
    """Yield a judge request for every item whose response can be graded, in item order.

    A response that is refused, failed or not sent is not judged: the grader assigns it. (The original sends a
    failed one as an empty answer; the published reading counts it like an empty answer without asking.)

    Raises:
        RemeasureError: items and responses do not fit each other; names the first id.
    """
    rows = jsonl.unique(jsonl.read(responses, Response), "custom_id", responses)
    found = {row.custom_id: row for row in rows}
    odd = sorted(found.keys() ^ {item.item_id for item in items})
    if odd:
        raise RemeasureError(
            f"{responses}: {len(odd)} ids stand only in the items or only in the responses "
            f"(first {odd[0]!r}); delete the responses and rerun, they are assembled again"
        )
    cell = JudgeCell(grader=settings.grader, gold=settings.gold, prompts=texts)
    for item in items:
        response = found[item.item_id]
        if response.status in GRADED:
            yield requests.make_request(
                item.item_id,
                requests.Body(
                    model=settings.model,
                    messages=messages(item, response, cell),
                    max_tokens=settings.max_tokens,
                    thinking=settings.thinking,
                    **_words(settings.sampling),
                ),
            )
