"""What a request about a case says: images with their labels, the text of the case, what is asked for.

Understood by what every wording of this benchmark has in common (MRareBench card, section 3): labels stand
directly before their images, the case comes before the word "Question", and the instruction comes last.
"""

import re
from dataclasses import dataclass
from typing import Literal

from remeasure.embedded.chat import BadRequest, ChatRequest, ImagePart, TextPart, image_bytes

_LABEL = re.compile(r"\s*([^\n:]{1,60}?)\s*:?\s*")
_QUESTION = re.compile(r"^\s*\**Question\**:", re.MULTILINE)
_WANTS_LIST = re.compile(r"numbered list|rank(?:ed|ing)?\b|most likely diagnos", re.IGNORECASE)
_WANTS_EVIDENCE = re.compile(r"\bimages?\b", re.IGNORECASE)
_DIAGNOSIS = re.compile(r"\s*established diagnosis:\s*([^\n]+?)\.(?:\s|$)", re.IGNORECASE)


@dataclass(frozen=True)
class CaseRequest:
    """A request about a case."""

    wants: Literal["list", "evidence"]
    images: tuple[tuple[str, bytes], ...]
    """Label and bytes, in order."""
    case: str
    """The text before the question."""
    diagnosis: str | None
    """The established diagnosis, where the case begins with it."""


def understand(request: ChatRequest) -> CaseRequest:
    """Read a request.

    Raises:
        BadRequest: thinking is asked for, there is no user message, or neither a list of diagnoses nor the
            findings of images are asked for.
    """
    if request.thinks():
        raise BadRequest("thinking: this reader has no thinking mode; ask without it")
    users = [message for message in request.messages if message.role == "user"]
    if not users:
        raise BadRequest("messages: no user message")
    content = users[-1].content
    parts = [TextPart(text=content)] if isinstance(content, str) else content
    images, texts = _parts(parts)
    text = "\n\n".join(texts)
    places = [match.start() for match in _QUESTION.finditer(text)]
    case, asked = (text[: places[-1]], text[places[-1] :]) if places else _without_question(text)
    told = _DIAGNOSIS.match(case)
    return CaseRequest(_wanted(asked), images, case.strip(), told[1].strip() if told else None)


def _parts(parts: list[TextPart | ImagePart]) -> tuple[tuple[tuple[str, bytes], ...], list[str]]:
    """Return labelled images, and the texts that are no label; without a label an image has its number."""
    images: list[tuple[str, bytes]] = []
    texts: list[str] = []
    label: str | None = None
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        if isinstance(part, ImagePart):
            images.append((label or f"Image {len(images) + 1}", image_bytes(part.image_url.url)))
            label = None
            continue
        found = _LABEL.fullmatch(part.text) if isinstance(after, ImagePart) else None
        label = found[1] if found else None
        if found is None:
            texts.append(part.text)
    return tuple(images), texts


def _without_question(text: str) -> tuple[str, str]:
    """Part a text without the word "Question": its last block is the instruction."""
    case, _, asked = text.rstrip().rpartition("\n\n")
    return case, asked


def _wanted(asked: str) -> Literal["list", "evidence"]:
    if _WANTS_LIST.search(asked):
        return "list"
    if _WANTS_EVIDENCE.search(asked):
        return "evidence"
    raise BadRequest(
        "messages: neither a numbered list of diagnoses nor the findings of images are asked for; this "
        "reader knows no other task"
    )
