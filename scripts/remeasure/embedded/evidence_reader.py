"""The evidence reader: searches with the tools that it is offered, picks sentences, cites them, answers.

It stands in for a language model that calls tools. A cross-encoder scores how well a sentence fits the
question; the best ones are the answer, word for word, and the chunks that they stand in are cited. Where no
sentence fits, it says that the documents do not tell. It knows nothing but what the request shows, holds no
state between requests, and gives equal replies to equal requests.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remeasure.embedded import evidence_numbers, evidence_words
from remeasure.embedded.chat import BadRequest, ChatRequest, Completion, texts_of
from remeasure.embedded.chat_tools import TOOL_WORDS, FunctionCall, ToolCall
from remeasure.embedded.evidence_request import Asked, Chunk, Evidence, chunks_of, understand
from remeasure.embedded.judge import CrossEncoder

DECLINED = "I do not have enough information in the documents to answer this question."
# So many sentences are scored, those that share most with the question, and so many answer at most.
N_CANDIDATES = 16
N_SENTENCES = 4
# A line with fewer words and no sign at its end is a heading or an entry of a list.
HEADING_WORDS = 6
# Further sentences must come near to the best one.
MARGIN = 8.0
_KEPT_SCORES = 50_000


@dataclass(frozen=True)
class Picked:
    """A sentence of a chunk with its score."""

    score: float
    chunk: Chunk
    sentence: str
    place: tuple[int, int]
    """Number of its chunk and its own number in it."""


class EvidenceReader:
    """Answers questions with what its tools find.

    Args:
        encoder: scores how well a text fits a question.
        threshold: the lowest score of a sentence that answers.
    """

    more_words = frozenset(TOOL_WORDS)

    def __init__(self, encoder: CrossEncoder, threshold: float) -> None:
        self._encoder, self._threshold = encoder, threshold
        self._scores: dict[tuple[str, str], float] = {}

    def answer(self, request: ChatRequest) -> Completion:
        """Call the next tool, or answer.

        Raises:
            BadRequest: no question, an image, thinking asked for, or a call demanded where none is left.
        """
        if request.thinks():
            raise BadRequest("thinking: this reader has no thinking mode; ask without it")
        asked = understand(request)
        n_asked = sum(self._encoder.count(text) for text in _texts(request))
        call = self._next_call(asked)
        if call is not None:
            kind, arguments = call
            text = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
            made = ToolCall(
                id=f"call_{len(request.messages)}_{kind}",
                function=FunctionCall(name=asked.tools[kind], arguments=text),
            )
            return Completion("", n_asked, self._encoder.count(text), "tool_calls", tool_calls=(made,))
        if asked.must_call:
            raise BadRequest("tool_choice: demands a call, and there is nothing left to call; ask with auto")
        text = self._text(asked)
        for stop in request.stops():
            text = text.partition(stop)[0]
        text, n_tokens, cut = self._encoder.limited(text, request.max_tokens)
        return Completion(text, n_asked, n_tokens, "length" if cut else "stop")

    def close(self) -> None:
        """Nothing to give back; the process ends next."""

    def _next_call(self, asked: Asked) -> tuple[str, dict[str, Any]] | None:
        """Return kind and arguments of what is called next; null where it is time to answer."""
        if "search" in asked.tools:
            query = self._next_query(asked)
            if query is not None:
                return "search", {"query": query}
        if "execute_code" in asked.tools and asked.wants_number and not asked.results("execute_code"):
            program = evidence_numbers.program(self._numbers(asked))
            if program is not None:
                return "execute_code", {"code": program}
        if "cite" in asked.tools and not asked.results("cite"):
            return "cite", {"chunk_ids": self._cited(asked)}
        return None

    def _next_query(self, asked: Asked) -> str | None:
        """Return the next query; null once something fits, or all were sent or one was refused."""
        done = asked.results("search")
        wanted = evidence_words.queries(asked.question, asked.earlier("user"))
        if done and (self._picked(asked) or not chunks_of(done[-1].result or "")):
            return None
        return wanted[len(done)] if len(done) < len(wanted) else None

    def _chunks(self, asked: Asked) -> list[Chunk]:
        """Return what was found for the question, then, where it leans on others, what is still shown."""
        evidence = Evidence()
        for call in asked.results("search"):
            evidence.add(chunks_of(call.result or ""))
        if evidence_words.leans(asked.question):
            evidence.add(list(asked.shown_before))
        return list(evidence.chunks.values())

    def _sense(self, asked: Asked) -> str:
        """Return the question as it would be asked alone."""
        return evidence_words.queries(asked.question, asked.earlier("user"))[0]

    def _picked(self, asked: Asked) -> list[Picked]:
        """Return the sentences that answer, in reading order; none where nothing fits."""
        question = self._sense(asked)
        chunks = self._chunks(asked)
        found = [
            Picked(self._score(question, _told(chunks[i], sentence)), chunks[i], sentence, (i, j))
            for i, j, sentence in _candidates(question, chunks)
        ]
        found.sort(key=lambda picked: (-picked.score, picked.place))
        best = found[0].score if found else 0.0
        kept: dict[str, Picked] = {}
        for picked in found:
            if picked.score < max(self._threshold, best - MARGIN) or len(kept) == N_SENTENCES:
                break
            kept.setdefault(" ".join(picked.sentence.split()), picked)
        return sorted(kept.values(), key=lambda picked: picked.place)

    def _numbers(self, asked: Asked) -> evidence_numbers.Found | None:
        return evidence_numbers.find(asked.question, self._chunks(asked))

    def _cited(self, asked: Asked) -> list[str]:
        number = self._numbers(asked) if asked.wants_number else None
        if number is not None:
            return list(number.chunk_ids)
        picked = sorted(self._picked(asked), key=lambda one: (-one.score, one.place))
        return list(dict.fromkeys(one.chunk.chunk_id for one in picked))

    def _text(self, asked: Asked) -> str:
        if asked.wants_number and (number := self._numbers(asked)) is not None:
            printed = [call.result for call in asked.results("execute_code") if call.result]
            return evidence_numbers.said(number, printed[-1] if printed else None)
        picked = self._picked(asked)
        return " ".join(one.sentence for one in picked) if picked else DECLINED

    def _score(self, question: str, text: str) -> float:
        """Return the score of a pair; a conversation comes again with every request, so scores are kept."""
        pair = (question, text)
        if pair not in self._scores:
            if len(self._scores) >= _KEPT_SCORES:
                self._scores.clear()
            self._scores[pair] = self._encoder.score(question, text)[0]
        return self._scores[pair]


def _texts(request: ChatRequest) -> Iterator[str]:
    """Yield everything that a request says, arguments of calls and descriptions of tools included."""
    for message in request.messages:
        yield from texts_of(message)
        for call in message.tool_calls or ():
            yield call.function.arguments
    for tool in request.tools:
        yield tool.function.description or ""
        yield json.dumps(tool.function.parameters, sort_keys=True)


def _candidates(question: str, chunks: list[Chunk]) -> list[tuple[int, int, str]]:
    """Return the sentences that are worth a look, with the numbers of their chunk and in it.

    Words count by how rare they are among the sentences. Without this a cross-encoder would read everything,
    which costs ten times as much.
    """
    wanted = evidence_words.stems(question)
    rows = [(i, j, one) for i, chunk in enumerate(chunks) for j, one in enumerate(_sentences(chunk))]
    shared = [wanted & evidence_words.stems(_told(chunks[i], one)) for i, _, one in rows]
    count = Counter(word for words in shared for word in words)
    weight = {word: math.log(1 + len(rows) / n) for word, n in count.items()}
    # Rounded, so that the last bits of a sum never decide.
    worth = [round(sum(weight[word] for word in sorted(words)), 9) for words in shared]
    order = sorted(range(len(rows)), key=lambda k: (-worth[k], k))
    return [rows[k] for k in order[:N_CANDIDATES]]


def _told(chunk: Chunk, sentence: str) -> str:
    """Return a sentence with the title of its document, which says what "it" is."""
    return f"{chunk.title}. {sentence}" if chunk.title else sentence


def _sentences(chunk: Chunk) -> list[str]:
    """Return the sentences of a chunk; its title and other headings are none."""
    found = evidence_words.sentences(chunk.text)
    return [one for one in found if one != chunk.title and not _is_heading(one)]


def _is_heading(line: str) -> bool:
    return line[-1].isalnum() and len(line.split()) < HEADING_WORDS


def load(*, model: Path, tokenizer: Path, threads: int, threshold: float) -> EvidenceReader:
    """Load the reader; errors as in ``judge.CrossEncoder``."""
    return EvidenceReader(CrossEncoder(model, tokenizer, threads), threshold)
