"""From items to request files, for readers and for judges: what all studies have in common."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from remeasure import evidence, jsonl, requests
from remeasure.aligned import Aligned
from remeasure.cells import AskSettings, Cell, JudgeCell, JudgeSettings
from remeasure.errors import RemeasureError
from remeasure.evidence import Evidence
from remeasure.records import ImageRef, Item, RenderedPage, Request, Response

GRADED = ("answered", "cut_off")


@contextmanager
def open_evidence(
    settings: AskSettings,
    ranking: Path | None,
    manifest: Path | None,
    tiles: Path | None,
    passages: Path | None,
) -> Iterator[Callable[[Item], Evidence]]:
    """Give the function that tells each item's evidence; only what the evidence kind needs is read.

    The items must come in the order of the ranking. Leaving the context without an error checks that no
    ranked list is left over.

    Raises:
        RemeasureError: a file that the kind needs is not given, or does not fit the items.
    """
    kind = settings.evidence
    if kind == "none":
        yield lambda item: evidence.NOTHING
        return
    ranking = _needed(ranking, "--ranking", kind)
    lists = evidence.open_ranking(ranking)
    parts: dict[str, ImageRef] | evidence.PassageTexts
    wanted = evidence.shown_ids(ranking, settings.n_shown)
    with ExitStack() as opened:
        if kind == "tiles":
            pages = jsonl.read(_needed(manifest, "--manifest", kind), RenderedPage)
            parts = evidence.tile_images(pages, _needed(tiles, "--tiles", kind), wanted)
        else:
            texts = evidence.PassageTexts(_needed(passages, "--passages", kind), wanted)
            parts = opened.enter_context(texts)
        yield lambda item: evidence.shown(
            item, lists.take(item.item_id), kind, settings.n_shown, parts.__getitem__
        )
    evidence.check_used_up(lists, ranking)


def _needed(path: Path | None, option: str, kind: str) -> Path:
    if path is None:
        raise RemeasureError(f"evidence {kind!r} needs {option}; give the path")
    return path


def reader_requests(
    items: Iterable[Item],
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
        images=settings.item_images,
        options=settings.options,
        task=settings.task,
    )
    for item in items:
        shown = evidence_of(item)
        request = requests.make_request(
            item.item_id,
            requests.Body(
                model=settings.model,
                messages=requests.with_detail(messages(item, shown, cell), settings.image_detail),
                max_tokens=settings.max_tokens,
                thinking=settings.thinking,
                task=settings.task,
                **_words(settings.sampling),
            ),
        )
        own = item.images if settings.item_images else ()
        yield request, _count_shown(item, own, shown, request)


def _words(sampling) -> dict[str, Any]:
    return {name: getattr(sampling, name) for name in sampling.__struct_fields__}


def _count_shown(item: Item, own: tuple[ImageRef, ...], shown: Evidence, request: Request) -> int:
    """Count the evidence in a request and compare it, and the item's own images, with what belongs there."""
    sent = [ref.sha256 for ref in requests.image_refs(request.body)]
    expected = [ref.sha256 for ref in (*own, *shown.images)]
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
    items: Iterable[Item],
    responses: Path,
    messages: Callable[[Item, Response, JudgeCell], list[dict[str, Any]]],
    settings: JudgeSettings,
    texts: dict[str, str],
    further: Callable[[Item, Response, JudgeCell], dict[str, list[dict[str, Any]]]] | None = None,
) -> Iterator[Request]:
    """Yield a judge request for every item whose response can be graded, in item order.

    Behind it stand those of further questions about the same answer, which ``further`` gives by name: their
    ids are the item's with the name behind ``--`` (``further_id``).

    A response that is refused, failed or not sent is not judged: the grader assigns it. (The original sends a
    failed one as an empty answer; the published reading counts it like an empty answer without asking.)

    Raises:
        RemeasureError: items and responses do not fit each other; names the first id.
    """
    cell = JudgeCell(grader=settings.grader, gold=settings.gold, prompts=texts)
    for item, response in _answered_items(items, responses):
        if response.status not in GRADED:
            continue
        asked = {item.item_id: messages(item, response, cell)}
        for name, more in (further(item, response, cell) if further else {}).items():
            asked[further_id(item.item_id, name)] = more
        for custom_id, told in asked.items():
            yield requests.make_request(
                custom_id,
                requests.Body(
                    model=settings.model,
                    messages=told,
                    max_tokens=settings.max_tokens,
                    thinking=settings.thinking,
                    response_format=settings.response_format,
                    **_words(settings.sampling),
                ),
            )


def further_id(item_id: str, name: str) -> str:
    """Return the id of a further question to the judge about an item's answer."""
    return f"{item_id}--{name}"


def _answered_items(items: Iterable[Item], responses: Path) -> Iterator[tuple[Item, Response]]:
    """Yield every item with its response; both stand in the same order."""
    rows = jsonl.unique(jsonl.read(responses, Response), "custom_id", responses)
    found = Aligned(rows, "custom_id", responses)
    rest = iter(items)
    for item in rest:
        response = found.take(item.item_id)
        if response is None:
            raise _misfit(responses, item.item_id, found.odd([item.item_id, *(i.item_id for i in rest)]))
        yield item, response
    left = found.ids_left()
    if left:
        raise _misfit(responses, left[0], sorted(left))


def _misfit(responses: Path, first: str, odd: list[str]) -> RemeasureError:
    if odd:
        problem = f"{len(odd)} ids stand only in the items or only in the responses (first {odd[0]!r})"
    else:
        problem = f"the responses stand in another order than the items (first at item {first!r})"
    return RemeasureError(f"{responses}: {problem}; delete the responses and rerun, they are assembled again")
