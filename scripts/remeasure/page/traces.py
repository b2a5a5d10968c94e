"""What a system did for a question, as boxes: hits, gold, citations, tools, and what a judge replied."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import UNSET

from remeasure import jsonl
from remeasure.page.escaping import plain
from remeasure.records import Document, Hit, Item, Response, Shown, ShownLine, Trace
from remeasure.text import strip_thinking

LONGEST_REPLY = 200_000
"""Characters of a judge's reply that are looked into."""
LONGEST_TURN = 2000
REPLIED = "What the judge replied"


def uris_of(item: Item, response: Response) -> Iterator[str]:
    """Yield the documents that are named for an answer, some more than once."""
    yield from item.relevant
    if response.trace is not UNSET:
        trace = response.trace
        yield from (hit.uri for hit in (*trace.found, *trace.found_documents))
        yield from (*trace.cited, *trace.searched)


def titles_of(paths: Iterable[Path], wanted: set[str]) -> dict[str, str]:
    """Return the titles of some documents; those of several datasets with the same uri keep the first."""
    found: dict[str, str] = {}
    for path in paths if wanted else ():
        for document in jsonl.read(path, Document):
            if document.uri in wanted:
                found.setdefault(document.uri, document.title)
    return found


def boxes_of(item: Item, response: Response, titles: Mapping[str, str]) -> tuple[Shown, ...]:
    """Return what a system did; nothing for a model that was asked directly.

    A tick stands before gold documents. Numbers before lines are ranks.
    """
    if response.trace is UNSET:
        return ()
    trace, gold = response.trace, set(item.relevant)
    found = [_conversation(trace)] if trace.before else []
    if trace.found or trace.found_documents:
        found.append(_hits("Hits: chunks", trace.found, gold, titles))
        known = list(dict.fromkeys(hit.uri for hit in trace.found))
        if [hit.uri for hit in trace.found_documents[: len(known)]] != known:
            found.append(_hits("Hits: documents", trace.found_documents, gold, titles))
        elif rest := trace.found_documents[len(known) :]:
            found.append(_hits("Further documents, up to the limit (strict)", rest, gold, titles))
    if item.relevant:
        reached = {hit.uri for hit in (*trace.found, *trace.found_documents)} | {
            *trace.cited,
            *trace.searched,
        }
        # Hits have a tick where they are gold: of a search only what it did not find is left to say.
        is_search = bool(trace.found or trace.found_documents)
        told = [uri for uri in item.relevant if not (is_search and uri in reached)]
        found += [_gold(told, reached, titles)] if told else []
    if trace.cited or trace.citation_status is not None:
        status = f": {trace.citation_status}" if trace.citation_status else ""
        found.append(Shown(title=f"Citations{status}", lines=tuple(_lines(trace.cited, gold, titles))))
    if trace.searched:
        found.append(Shown(title="Found by its searches", lines=tuple(_lines(trace.searched, gold, titles))))
    return (*found, _work(trace))


def _named(uri: str, titles: Mapping[str, str]) -> str:
    title = titles.get(uri, "")
    return f"{title} · {uri}" if title and title != uri else uri


def _lines(uris: Sequence[str], gold: set[str], titles: Mapping[str, str]) -> Iterator[ShownLine]:
    for uri in uris:
        yield ShownLine(text=_named(uri, titles), mark="yes" if uri in gold else None)


def _hits(title: str, hits: Sequence[Hit], gold: set[str], titles: Mapping[str, str]) -> Shown:
    lines = []
    for hit in hits:
        score = [] if hit.score is None else [f"{hit.score:.4g}"]
        text, title_of = " ".join(hit.text.split()), " ".join(titles.get(hit.uri, "").split())
        begin = text.removeprefix(f"{title_of} " if title_of else "")[:160]
        note = ", ".join([*score, *([begin] if begin else [])])
        mark = "yes" if hit.uri in gold else None
        lines.append(ShownLine(text=_named(hit.uri, titles), mark=mark, note=note))
    return Shown(title=title, lines=tuple(lines))


def _gold(uris: Sequence[str], reached: set[str], titles: Mapping[str, str]) -> Shown:
    lines = [
        ShownLine(
            text=_named(uri, titles),
            mark="yes" if uri in reached else "no",
            note="" if uri in reached else "not found",
        )
        for uri in uris
    ]
    return Shown(title="Gold documents", lines=tuple(lines))


def _conversation(trace: Trace) -> Shown:
    lines = [ShownLine(text=turn.text, note=turn.speaker) for turn in trace.before]
    return Shown(title="The conversation before, as it went", lines=tuple(lines))


def _work(trace: Trace) -> Shown:
    """Return calls of tools, what else happened, requests with tokens, and time."""
    told = [f"{n:,} × {name}" for name, n in sorted(trace.tools.items()) if n]
    told += [f"{n:,} × {name.replace('_', ' ')}" for name, n in sorted(trace.events.items()) if n]
    if trace.requests:
        n_in = sum(one.input_tokens for one in trace.requests)
        n_out = sum(one.output_tokens for one in trace.requests)
        told.append(f"{len(trace.requests):,} requests, {n_in:,} tokens in, {n_out:,} tokens out")
    told.append(f"{trace.seconds:.2f} s")
    lines = tuple(ShownLine(text=line) for line in told)
    return Shown(title="Tools, requests, time", lines=lines, numbered=False)


def is_list_of_hits(response: Response) -> bool:
    """Say whether an answer is only names of what was found, which is shown in another way beside it."""
    if response.placed is not UNSET:
        return True
    if response.trace is UNSET or not response.trace.found:
        return False
    named = {hit.uri for hit in response.trace.found}
    return all(line in named for line in (response.text or "").split("\n"))


def without_replies(shown: Sequence[Shown], replies: Sequence[Shown]) -> tuple[Shown, ...]:
    """Return the boxes of a grader without those that say only what the judge's replies say."""
    said = {line.text for box in replies if box.title == REPLIED for line in box.lines}
    return tuple(box for box in shown if not box.lines or any(line.text not in said for line in box.lines))


def reference_conversation(item: Item) -> str:
    """Return the turns before the question as the dataset has them, folded; empty where there are none."""
    turns = item.meta.get("turns")
    before = [turn for turn in turns[:-1] if isinstance(turn, dict)] if isinstance(turns, list) else []
    if not before:
        return ""
    said = "".join(
        f'<p class="role">{plain(str(turn.get("speaker")), 40)}</p>'
        f"<p>{plain(str(turn.get('text')), LONGEST_TURN)}</p>"
        for turn in before
    )
    return (
        f"<details><summary>conversation of the dataset, {len(before):,} turns before</summary>"
        f"<div>{said}</div></details>"
    )


def judged_boxes(item_id: str, replies: Mapping[str, Response]) -> tuple[Shown, ...]:
    """Return what a judge replied about an answer and to further questions about it."""
    lines = []
    for custom_id, reply in replies.items():
        head, _, name = custom_id.partition("--")
        if custom_id == item_id or (head == item_id and name):
            lines.append(_reply(reply, name))
    return (Shown(title=REPLIED, lines=tuple(lines), numbered=False),) if lines else ()


def _reply(reply: Response, name: str) -> ShownLine:
    """Return a reply in a line: the reason of a structured verdict, else its text as it is.

    What it says to a further question makes no answer good or bad, and has no mark.
    """
    text = strip_thinking(reply.text or "")[0].strip()
    about = [name] if name else []
    if reply.status != "answered":
        about.append(reply.status.replace("_", " "))
    found = _decoded(text)
    if found is not None and isinstance(found.get("pass"), bool):
        reason = found.get("reason")
        said = reason if isinstance(reason, str) and reason.strip() else "no reason"
        if name:
            return ShownLine(text=said, note=f"{name}: {'yes' if found['pass'] else 'no'}")
        about.append("pass" if found["pass"] else "fail")
        return ShownLine(text=said, mark="yes" if found["pass"] else "no", note=", ".join(about))
    return ShownLine(text=text or "no text", note=", ".join(about))


def _decoded(text: str) -> dict | None:
    if not text.startswith("{") or len(text) > LONGEST_REPLY:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
