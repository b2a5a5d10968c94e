"""The page reader: OCR, the lines nearest to the question, and a small language model that reads them.

It stands in for a vision-language model: images and text in, a short answer out, behind the same protocol.
With evidence its answers are values and phrases of the evidence (``answers``); without, what the language
model believes. It does not see pictures: what a photo shows it takes from the order of the pages.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from remeasure.embedded import answers
from remeasure.embedded.chat import ChatRequest, Completion
from remeasure.embedded.evidence import LineVectors, PageTexts
from remeasure.embedded.lines import split_passages, spoken, text_lines
from remeasure.embedded.llm import Llm, Reply, Sampling
from remeasure.embedded.prompt import EXACT_LABEL, Option, Prompt, understand
from remeasure.embedded.select import RANK_PENALTY, RANK_PENALTY_UNSEEN, Candidate, best_lines

log = logging.getLogger("remeasure.page_reader")
CONTEXT_TOKENS = 2048
ANSWER_TOKENS = 24
LINE_CHARS = 300
# An image with fewer lines is a picture, whatever OCR reads into its shapes.
PAGE_LINES = 3
# SmolLM2's own system text makes it answer gibberish; this one was measured to work.
SYSTEM = "You are a helpful assistant."
INSTRUCTION = "Answer with the exact value from the text."


@dataclass(frozen=True)
class Read:
    """An answer with the lines that it was read from."""

    answer: str
    lines: list[str]
    reply: Reply


class PageReader:
    """Answers questions about page images and passages."""

    more_words: frozenset[str] = frozenset()

    def __init__(self, llm: Llm, vectors: LineVectors, pages: PageTexts) -> None:
        self._llm, self._vectors, self._pages = llm, vectors, pages

    def answer(self, request: ChatRequest) -> Completion:
        """Answer a chat request; see ``prompt`` for the layout that is understood.

        Raises:
            BadRequest: no question, or an image that cannot be read.
        """
        prompt = understand(request)
        read = self._read(prompt, request)
        text = self._in_form(read.answer, prompt)
        if request.thinks():
            seen = "\n".join(read.lines) or "There is no evidence to look at."
            text = f"<think>\n{seen}\n</think>\n\n{text}"
        for stop in request.stops():
            text = text.partition(stop)[0]
        text, n_tokens, cut = self._llm.limited(text, request.max_tokens)
        return Completion(text, read.reply.prompt_tokens, n_tokens, "length" if cut else "stop")

    def close(self) -> None:
        """Nothing to give back; the process ends next."""

    def candidates(self, prompt: Prompt) -> list[Candidate]:
        """Return all lines of all evidence, best evidence first."""
        found: list[Candidate] = []
        rank = 0
        for image in prompt.images:
            lines = self._pages.lines(image)
            found += [Candidate(line, rank) for line in lines]
            rank += bool(lines)
        for passage in split_passages(prompt.evidence):
            found += [Candidate(line, rank) for line in text_lines(passage)]
            rank += 1
        return found

    def _read(self, prompt: Prompt, request: ChatRequest) -> Read:
        lines = self._best_lines(prompt)
        messages = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": inner_prompt(prompt, lines)},
        ]
        reply = self._llm.chat(messages, Sampling.of(request, ANSWER_TOKENS, ("\n",)))
        return Read(answers.short_answer(reply.text, prompt.question, lines), lines, reply)

    def _best_lines(self, prompt: Prompt) -> list[str]:
        candidates = self.candidates(prompt)
        if not candidates:
            return []
        unseen = any(len(self._pages.lines(image)) < PAGE_LINES for image in prompt.images)
        chosen = best_lines(
            candidates,
            self._vectors.of_lines([candidate.text for candidate in candidates]),
            self._vectors.of_question(prompt.question),
            RANK_PENALTY_UNSEEN if unseen else RANK_PENALTY,
        )
        return [candidate.text for candidate in chosen]

    def _in_form(self, answer: str, prompt: Prompt) -> str:
        if prompt.options:
            return self._option(answer, prompt.options).letter
        return f"{EXACT_LABEL} {answer}" if prompt.wants_exact_line else answer

    def _option(self, answer: str, options: tuple[Option, ...]) -> Option:
        """Return the option that the answer names, or else the nearest in meaning; the first of equals."""
        named = answers.containing_option(answer, options)
        if named is not None:
            return named
        vectors = self._vectors.encode([answer, *(option.text for option in options)]).astype(np.float64)
        return options[int(np.argmax((vectors[1:] @ vectors[0]).round(9)))]


def inner_prompt(prompt: Prompt, lines: list[str]) -> str:
    """Return what the language model is asked: question, lines best first, instruction; or the bare question.

    Source:
        Embedded-stack card, section 5: the order that read best of some 15 tried on tuning questions.
    """
    if lines:
        shown = [spoken(line)[:LINE_CHARS] for line in lines]
        return "\n".join([f"Question: {prompt.question}", "", *shown, "", INSTRUCTION])
    if prompt.options or not prompt.instruction:
        return prompt.question
    return f"{prompt.question}\n\n{prompt.instruction}"


def load(
    *,
    llm: Path,
    encoder: Path,
    tokenizer: Path,
    ocr: Path | None,
    line_vectors: Path | None,
    threads: int,
) -> PageReader:
    """Load all parts of the page reader.

    Raises:
        RemeasureError: a file is missing, damaged, or of another encoder.
    """
    vectors = LineVectors(encoder, tokenizer, line_vectors)
    return PageReader(Llm(llm, threads, CONTEXT_TOKENS), vectors, PageTexts(ocr))
