"""What a model is sent of the evidence of earlier questions: all of it, or only what was cited.

The conversation that is kept is never changed; only what is sent is.
"""

import re
from typing import Any

RECEIPT = "Results of an earlier question, set aside."
NOTHING = "Results of earlier questions, set aside; nothing of them was cited."
_HEAD = "Results of earlier questions, set aside but for what was cited:"

Message = dict[str, Any]


def compacted(messages: list[Message], evidence: list[int], cited: list[dict[str, Any]]) -> list[Message]:
    """Return the earlier turns of a conversation with their evidence packed together.

    Args:
        messages: of all earlier turns, results of tools included.
        evidence: which of them are results of a search.
        cited: of each earlier question ``question`` and ``chunks`` (``chunk``, ``title``, ``text``), first
            ones first.

    Returns:
        The same messages but for the evidence: the newest result holds the text of everything cited so far,
        under the question that cited it, newest first, each chunk once; every other is one line.

    Source:
        RAG card 2.6.
    """
    sent = list(messages)
    for place in evidence:
        sent[place] = {**sent[place], "content": RECEIPT}
    if evidence:
        sent[evidence[-1]] = {**sent[evidence[-1]], "content": capsule(cited)}
    return sent


def capsule(cited: list[dict[str, Any]]) -> str:
    """Return what was cited so far as a text."""
    groups, seen = [], set()
    for each in reversed(cited):
        new = [one for one in each["chunks"] if one["chunk"] not in seen]
        seen.update(one["chunk"] for one in new)
        if new:
            groups.append("\n\n".join([_heading(each["question"]), *map(shown, new)]))
    return "\n\n".join([_HEAD, *groups]) if groups else NOTHING


def _heading(question: str) -> str:
    """Return the line above the chunks of a question.

    One line in brackets, and none within it: nobody takes it for a sentence of the chunk before it, nor a
    question for the head of a chunk.
    """
    said = " ".join(question.split()).translate({ord("["): "(", ord("]"): ")"})
    return f"[Cited for: {said}]"


def shown(chunk: dict[str, Any], rank: str = "") -> str:
    """Return a chunk as the model sees it; no text in it can pass for the head of another."""
    title = " ".join(chunk["title"].replace('"', "'").split())
    return f'[{chunk["chunk"]}]{rank}\nSource: "{title}"\nContent:\n{_indented(chunk["text"])}'


def _indented(text: str) -> str:
    """Return text with a blank before each line that begins with a bracket, as the heads of chunks do."""
    return re.sub(r"^\[", " [", text, flags=re.MULTILINE)
