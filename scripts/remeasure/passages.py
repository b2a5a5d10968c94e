"""The text arm's corpus: what an extractor keeps of a page, cut into passages of a fixed number of tokens."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.records import ExtractedPage, Page, Passage


class TextSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides the passages of a page."""

    max_tokens: int
    """Tokens of the encoder's tokenizer per passage; no overlap."""
    tables: bool
    """Whether tables are kept. Without them every fact that stands in an infobox is lost."""
    comments: bool
    """Whether readers' comments are kept."""


def load_tokenizer(path: Path) -> Any:
    """Return the tokenizer of a ``tokenizer.json``, without the cutting and filling that the file asks for.

    Raises:
        RemeasureError: the file is missing or no tokenizer.
    """
    import tokenizers

    if "model" not in jsonl.read_json(path):
        raise RemeasureError(f"{path}: not a tokenizer file (no `model` in it); delete it and fetch it again")
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def extract(html: bytes, settings: TextSettings) -> str:
    """Return the main text of an HTML page as Markdown, or an empty string where the extractor keeps nothing.

    Source:
        Specification card, section 3.4: Trafilatura with Markdown output, tables on, comments off.
    """
    import trafilatura

    text = trafilatura.extract(
        html,
        output_format="markdown",
        include_tables=settings.tables,
        include_comments=settings.comments,
        with_metadata=False,
    )
    return (text or "").strip()


def cut(text: str, tokenizer: Any, max_tokens: int) -> list[tuple[int, int, str]]:
    """Cut a text into passages of ``max_tokens`` tokens, without overlap.

    Args:
        text: any text.
        tokenizer: a ``tokenizers.Tokenizer``.
        max_tokens: tokens per passage, at least 1; special tokens are not counted.

    Returns:
        (character offset in ``text``, number of tokens, passage text) of each passage, in order.
        A passage ends where the next one's first token begins, less white space.

    Edges:
        An empty text, or one without a token, gives no passage.
    """
    spans = tokenizer.encode(text, add_special_tokens=False).offsets
    passages = []
    for first in range(0, len(spans), max_tokens):
        behind = first + max_tokens
        start = spans[first][0]
        end = spans[behind][0] if behind < len(spans) else spans[-1][1]
        passages.append((start, min(max_tokens, len(spans) - first), text[start:end].rstrip()))
    return passages


def passages_of(page: Page, text: str, tokenizer: Any, settings: TextSettings) -> Iterator[Passage]:
    """Yield the passages of one page; its title travels beside the text, never in it."""
    for index, (offset, n_tokens, part) in enumerate(cut(text, tokenizer, settings.max_tokens)):
        yield Passage(
            passage_id=f"{page.page_id}/{index:04d}",
            page_id=page.page_id,
            chunk_index=index,
            char_offset=offset,
            n_tokens=n_tokens,
            text=part,
            title=page.title,
            url=page.path,
        )


def outcome(page: Page, text: str, n_passages: int) -> ExtractedPage:
    """Return the record of a page whose extraction ran, also where it kept nothing."""
    if n_passages == 0:
        reason = "the extractor kept nothing of the page"
        return ExtractedPage(
            page_id=page.page_id, status="empty", reason=reason, n_chars=len(text), n_passages=0
        )
    return ExtractedPage(page_id=page.page_id, status="extracted", n_chars=len(text), n_passages=n_passages)


def failure(page: Page, reason: str) -> ExtractedPage:
    """Return the record of a page that could not be read or parsed."""
    return ExtractedPage(page_id=page.page_id, status="failed", reason=reason, n_chars=0, n_passages=0)
