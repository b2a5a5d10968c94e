"""A small language model as it is: the conversation goes in, its text comes out."""

from pathlib import Path

from remeasure.embedded.chat import BadRequest, ChatRequest, Completion, images_of, texts_of
from remeasure.embedded.llm import Llm, Sampling

CONTEXT_TOKENS = 4096


class PlainLlm:
    """Answers with what the model writes."""

    def __init__(self, llm: Llm) -> None:
        self._llm = llm

    def answer(self, request: ChatRequest) -> Completion:
        """Answer a chat request.

        Raises:
            BadRequest: an image in it, thinking asked for, or longer than the context.
        """
        if request.thinks():
            raise BadRequest("thinking: this model has no thinking mode; ask without it")
        if any(images_of(message) for message in request.messages):
            raise BadRequest("messages: this model reads text only, the request has an image")
        messages = [
            {"role": message.role, "content": "\n\n".join(texts_of(message))} for message in request.messages
        ]
        limit = min(request.max_tokens or CONTEXT_TOKENS, CONTEXT_TOKENS)
        reply = self._llm.chat(messages, Sampling.of(request, limit))
        finish = "length" if reply.cut else "stop"
        return Completion(reply.text, reply.prompt_tokens, reply.completion_tokens, finish)

    def close(self) -> None:
        """Nothing to give back; the process ends next."""


def load(*, llm: Path, threads: int) -> PlainLlm:
    """Load a model; errors as in ``Llm``."""
    return PlainLlm(Llm(llm, threads, CONTEXT_TOKENS))
