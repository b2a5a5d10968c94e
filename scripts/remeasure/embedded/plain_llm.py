"""A small language model as it is: the conversation goes in, its text comes out."""

import dataclasses
from pathlib import Path

import msgspec

from remeasure.embedded.chat import MORE_WORDS, BadRequest, ChatRequest, Completion, images_of, texts_of
from remeasure.embedded.llm import Llm, Sampling

CONTEXT_TOKENS = 4096


class PlainLlm:
    """Answers with what the model writes."""

    more_words = frozenset(MORE_WORDS)

    def __init__(self, llm: Llm) -> None:
        self._llm = llm

    def answer(self, request: ChatRequest) -> Completion:
        """Answer a chat request.

        Raises:
            BadRequest: an image in it, thinking asked for, longer than the context, or a schema that
                llama.cpp cannot keep to.
        """
        if request.thinks():
            raise BadRequest("thinking: this model has no thinking mode; ask without it")
        if any(images_of(message) for message in request.messages):
            raise BadRequest("messages: this model reads text only, the request has an image")
        messages = [
            {"role": message.role, "content": "\n\n".join(texts_of(message))} for message in request.messages
        ]
        limit = min(request.max_tokens or CONTEXT_TOKENS, CONTEXT_TOKENS)
        sampling = dataclasses.replace(
            Sampling.of(request, limit),
            response_format=msgspec.to_builtins(request.response_format),
            top_logprobs=(request.top_logprobs or 0) if request.logprobs else None,
        )
        reply = self._llm.chat(messages, sampling)
        finish = "length" if reply.cut else "stop"
        return Completion(
            reply.text, reply.prompt_tokens, reply.completion_tokens, finish, logprobs=reply.logprobs
        )

    def close(self) -> None:
        """Nothing to give back; the process ends next."""


def load(*, llm: Path, threads: int) -> PlainLlm:
    """Load a model; errors as in ``Llm``."""
    return PlainLlm(Llm(llm, threads, CONTEXT_TOKENS))
