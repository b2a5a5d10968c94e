"""What a message asks: question, options, evidence text, instruction and images.

The page reader is no language model that could make sense of any layout, so this one is agreed:

- A line that begins with ``Question:`` holds the question; without one the first paragraph is the question.
- Lines ``A. text`` to ``E. text`` are options.
- A paragraph that begins with ``Evidence:`` is a remark about the evidence and is skipped.
- The last paragraph is the instruction, if it begins with ``Answer``.
- All other text, before or after the question, is evidence in Markdown, best first; a rule (``---``) or two
  blank lines part the passages.
- All images are evidence, best first; those without text tell this reader nothing.
"""

import re
from dataclasses import dataclass

from remeasure.embedded.chat import BadRequest, ChatRequest, images_of, texts_of

_QUESTION = re.compile(r"^Question:[ \t]*(.+)$", re.MULTILINE)
_OPTION = re.compile(r"^([A-E])[.)][ \t]+(.+)$", re.MULTILINE)
EXACT_LABEL = "Exact Answer:"


@dataclass(frozen=True)
class Option:
    """One answer to choose from."""

    letter: str
    text: str


@dataclass(frozen=True)
class Prompt:
    """A message taken apart."""

    question: str
    options: tuple[Option, ...]
    instruction: str
    evidence: str
    """Evidence text in Markdown; empty where there is none."""
    images: tuple[bytes, ...]

    @property
    def wants_exact_line(self) -> bool:
        """Whether the answer must end in a line with the label ``Exact Answer:``."""
        return EXACT_LABEL in self.instruction


def understand(request: ChatRequest) -> Prompt:
    """Take the last user message apart.

    Raises:
        BadRequest: no user message, no question in it, or an unreadable image address.
    """
    users = [message for message in request.messages if message.role == "user"]
    if not users:
        raise BadRequest("messages: there is no user message")
    text = "\n\n".join(texts_of(users[-1])).strip()
    found = list(_QUESTION.finditer(text))
    if found:
        question = found[-1].group(1).strip()
        before, after = text[: found[-1].start()], text[found[-1].end() :]
    else:
        question, _, after = text.partition("\n\n")
        question, before = question.strip(), ""
    if not question:
        raise BadRequest("messages: the user message holds no question")
    options = tuple(Option(letter, words.strip()) for letter, words in _OPTION.findall(after))
    after, instruction = _split_instruction(_OPTION.sub("", after) if options else after)
    evidence = "\n\n".join(part for part in map(_without_notes, (before, after)) if part)
    return Prompt(question, options, instruction, evidence, tuple(images_of(users[-1])))


def _split_instruction(text: str) -> tuple[str, str]:
    """Part the last paragraph from the text, if it is an instruction."""
    rest, _, last = text.strip().rpartition("\n\n")
    return (rest, last.strip()) if last.lstrip().startswith("Answer") else (text.strip(), "")


def _without_notes(text: str) -> str:
    """Remove remarks about the evidence; the blank lines that part passages stay."""
    paragraphs = re.split(r"(\n[ \t]*\n)", text)
    kept = [part for part in paragraphs if not part.lstrip().startswith("Evidence:")]
    return "".join(kept).strip()
