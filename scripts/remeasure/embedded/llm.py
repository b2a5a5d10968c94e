"""A small language model in this process: llama.cpp with everything off that makes answers depend on history.

One slot, no prompt cache, a fixed number of threads: then a greedy answer is the same in any order of the
questions and in every process. The number of threads is part of the result (1 and 2 give different texts).
"""

import json
import logging
import threading
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remeasure.embedded.chat import BadRequest, ChatRequest
from remeasure.errors import RemeasureError

log = logging.getLogger("remeasure.llm")
_GGUF = b"GGUF"


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen and when to stop."""

    max_tokens: int
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    response_format: dict[str, Any] | None = None
    """Shape of the text, in the protocol's form."""
    top_logprobs: int | None = None
    """How many log-probabilities are returned per token; null: none, not even of the token itself."""

    @classmethod
    def of(cls, request: ChatRequest, max_tokens: int, stop: tuple[str, ...] = ()) -> "Sampling":
        """Return what a request says, with another limit and further stop strings."""
        stops = tuple(dict.fromkeys((*stop, *request.stops())))
        return cls(max_tokens, request.temperature, request.top_p, request.top_k, request.seed, stops)

    def fields(self) -> dict[str, Any]:
        """Return the keys that are set, in llama.cpp's words."""
        every = {
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "seed": self.seed,
            "stop": list(self.stop) or None,
            "response_format": self.response_format,
        }
        if self.top_logprobs is not None:
            # With 0 llama.cpp returns nothing at all.
            every |= {"logprobs": True, "top_logprobs": max(1, self.top_logprobs)}
        return {key: value for key, value in every.items() if value is not None}


@dataclass(frozen=True)
class Reply:
    """What the model wrote and how many tokens it read and wrote."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    cut: bool
    """Whether the limit ended it."""
    logprobs: list[dict[str, Any]] | None = None
    """One entry per token: ``token``, ``bytes``, ``logprob``, ``top_logprobs``."""


class Llm:
    """A loaded model. Calls are taken one at a time, from any thread."""

    def __init__(self, model: Path, threads: int, context_tokens: int) -> None:
        """Load a model.

        Args:
            model: GGUF file.
            threads: at least 1; part of the result.
            context_tokens: how many tokens prompt and answer may have together.

        Raises:
            RemeasureError: missing or not a GGUF file.
        """
        _check_file(model)
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        # The wheel's server listens whether or not it is used; only /tokenize is asked there.
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.n_ctx = context_tokens
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.cache_prompt = False
        params.cache_ram_mib = 0
        params.warmup = False
        params.fit_params = False
        params.verbosity = 0
        self._context_tokens = context_tokens
        self._lock = threading.Lock()
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise RemeasureError(
                f"{model}: llama.cpp cannot load it ({error}); delete it and run snakemake -c1 {model}"
            ) from None

    def chat(self, messages: list[dict[str, str]], sampling: Sampling) -> Reply:
        """Answer a conversation of text messages.

        Raises:
            BadRequest: the conversation does not fit into the context; llama.cpp does not know the schema.
        """
        try:
            with self._lock:
                reply = self._server.handle_chat_completions({"messages": messages} | sampling.fields())
        except ValueError as error:
            raise BadRequest(f"language model: {error}") from None
        if "error" in reply:
            raise BadRequest(f"language model: {reply['error'].get('message', reply['error'])}")
        choice, usage = reply["choices"][0], reply["usage"]
        return Reply(
            text=choice["message"]["content"] or "",
            prompt_tokens=usage["prompt_tokens"],
            completion_tokens=usage["completion_tokens"],
            cut=choice["finish_reason"] == "length",
            logprobs=None
            if sampling.top_logprobs is None
            else _logprobs(choice.get("logprobs") or {"content": []}, sampling.top_logprobs),
        )

    def pieces(self, text: str) -> list[bytes]:
        """Return the tokens of a text as bytes; joined they are the text."""
        request = urllib.request.Request(
            f"{self._server.listening_address}/tokenize",
            json.dumps({"content": text, "with_pieces": True}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as reply:
            tokens = json.load(reply)["tokens"]
        # A token that is no whole letter comes as a list of byte values.
        return [
            piece.encode() if isinstance(piece, str) else bytes(piece)
            for piece in (token["piece"] for token in tokens)
        ]

    def limited(self, text: str, max_tokens: int | None) -> tuple[str, int, bool]:
        """Cut a text to a number of tokens.

        Returns:
            The text, its number of tokens, and whether something was cut off.
        """
        pieces = self.pieces(text)
        if max_tokens is None or len(pieces) <= max_tokens:
            return text, len(pieces), False
        kept = b"".join(pieces[:max_tokens])
        return kept.decode("utf-8", "ignore"), max_tokens, True


def _logprobs(told: dict[str, Any], n_top: int) -> list[dict[str, Any]]:
    """Return llama.cpp's log-probabilities in the protocol's form, with ``n_top`` alternatives each."""

    def entry(token: dict[str, Any]) -> dict[str, Any]:
        return {name: token[name] for name in ("token", "bytes", "logprob")}

    return [
        entry(token) | {"top_logprobs": [entry(other) for other in token["top_logprobs"][:n_top]]}
        for token in told["content"]
    ]


def _check_file(model: Path) -> None:
    try:
        with open(model, "rb") as stream:
            head = stream.read(4)
    except OSError as error:
        raise RemeasureError(
            f"{model}: cannot be read ({error.strerror}); run the target that makes it: snakemake -c1 {model}"
        ) from None
    if head != _GGUF:
        raise RemeasureError(
            f"{model}: not a GGUF model (starts with {head!r}); delete it and run snakemake -c1 {model}"
        )
