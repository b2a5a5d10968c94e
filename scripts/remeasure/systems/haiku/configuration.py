"""The configuration of haiku.rag that endpoints, options and the words of a command ask for.

Nothing is read from files of the user (``haiku.rag.yaml``) or from variables of the environment but the keys
whose names a command gives.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from remeasure.systems.haiku.failures import Failed, key_of, one_line

NO_KEY = "none"
"""What is sent where an endpoint needs no key; a key of the user must not go there instead."""

OPTIONS = {
    "chunking": "own: pieces of `chunk_tokens`; docling: the library's converter and chunker",
    "chunk_tokens": "tokens of a chunk",
    "tokenizer": "folder of a tokenizer on this computer, which docling's chunker counts with",
    "embedder_provider": "openai or vllm",
    "multimodal": "whether the embedder takes pictures",
    "embedding_batch": "chunks in one request to the embedder",
    "rerank_pictures": "whether the reranker sees pictures",
    "vision": "whether the answerer is shown pictures",
    "search_limit": "chunks that a search of an answer returns",
    "context_chars": "characters that a result is widened to",
    "max_searches": "searches for one question",
    "max_executions": "code for one question",
    "request_limit": "requests for one question before only citing is left",
    "extra_body": "what else is sent with every request to the answerer",
    "config": "further sections of the library's configuration",
}
SECTIONS = ("analysis", "processing", "providers", "sandbox", "search")
"""What ``config`` may hold: nothing that endpoints or other options decide."""

_SWITCH = ("embedded", "llamacpp", "vllm")
_OWN_TOKENS = "runs of letters and digits, single other characters"


def check_options(options: dict[str, Any]) -> None:
    """Check the names of options.

    Raises:
        Failed: one is unknown, or holds what is decided elsewhere.
    """
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise Failed("fatal", f"option {unknown[0]!r} is unknown to haiku_rag; known: {', '.join(OPTIONS)}")
    if options.get("chunking", "own") not in ("own", "docling"):
        raise Failed("fatal", f"option chunking: {options['chunking']!r}; expected own or docling")
    further = options.get("config") or {}
    refused = sorted(set(further) - set(SECTIONS))
    if refused:
        raise Failed(
            "fatal", f"option config.{refused[0]} is decided elsewhere; {', '.join(SECTIONS)} may be set"
        )
    if "api_key" in str(further):
        raise Failed(
            "fatal", "option config holds api_key; keys come from variables of the environment alone"
        )


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping with another laid over it, sections into sections."""
    both = dict(below)
    for key, value in above.items():
        old = both.get(key)
        both[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return both


@contextlib.contextmanager
def sending_key(endpoint: dict[str, Any] | None) -> Iterator[None]:
    """Let clients that are made meanwhile send the key of one endpoint and no other."""
    os.environ["OPENAI_API_KEY"] = (key_of(endpoint) if endpoint else None) or NO_KEY
    try:
        yield
    finally:
        os.environ["OPENAI_API_KEY"] = NO_KEY


def _processing(options: dict[str, Any]) -> dict[str, Any]:
    # Remote images would be fetched from wherever a document says.
    found: dict[str, Any] = {"pictures": "none", "conversion_options": {"fetch_remote_images": False}}
    if "chunk_tokens" in options:
        found["chunk_size"] = options["chunk_tokens"]
    if "tokenizer" in options:
        found["chunking_tokenizer"] = options["tokenizer"]
    elif options.get("chunking", "own") == "own":
        # Only to be seen in the database's own settings; no such tokenizer is loaded.
        found["chunking_tokenizer"] = _OWN_TOKENS
    return found


def _reranking(reranker: dict[str, Any] | None, options: dict[str, Any]) -> dict[str, Any]:
    if reranker is None:
        return {"model": None}
    if reranker.get("key_env"):
        raise Failed("fatal", f"haiku.rag sends no key to a reranker, and {reranker['base_url']} needs one")
    base = reranker["base_url"].rstrip("/").removesuffix("/v1")
    model = {"provider": "vllm", "name": reranker["model"], "base_url": base}
    return {"model": model, "multimodal": bool(options.get("rerank_pictures", False))}


def _answering(answerer: dict[str, Any], options: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    known = {name: words[name] for name in ("temperature", "max_tokens") if words.get(name) is not None}
    further = {
        name: value
        for name, value in words.items()
        if name not in ("temperature", "max_tokens", "thinking") and value is not None
    }
    body = merged(options.get("extra_body") or {}, further)
    if words.get("thinking") is not None:
        if answerer.get("dialect") not in _SWITCH:
            raise Failed("fatal", f"{answerer['base_url']}: there is no switch for thinking")
        body = merged(body, {"chat_template_kwargs": {"enable_thinking": words["thinking"]}})
    model = {"provider": "openai", "name": answerer["model"], "base_url": answerer["base_url"]}
    return model | known | {"vision": bool(options.get("vision", False)), "extra_body": body or None}


def config_values(
    endpoints: dict[str, dict[str, Any] | None],
    options: dict[str, Any],
    *,
    preamble: str | None = None,
    words: dict[str, Any] | None = None,
    merged_code: bool = False,
) -> dict[str, Any]:
    """Return the configuration as a mapping.

    Args:
        endpoints: ``embedder``, ``reranker``, ``answerer`` as the contract has them.
        options: of database and system.
        preamble: what the model is told of the domain.
        words: sampling and ``thinking`` of an answer.
        merged_code: the budget of code belongs to ``qa`` (0.101.1), not to ``analysis`` (0.77.0).
    """
    embedder = endpoints["embedder"]
    embedding = {
        "provider": options.get("embedder_provider", "openai"),
        "name": embedder["model"],
        "vector_dim": embedder["vector_dim"],
        "base_url": embedder["base_url"],
        "multimodal": bool(options.get("multimodal", False)),
    }
    batch = {"batch_size": options["embedding_batch"]} if "embedding_batch" in options else {}
    answerer = endpoints.get("answerer")
    answering: dict[str, Any] = {}
    if answerer is not None:
        answering["model"] = _answering(answerer, options, words or {})
    if "max_searches" in options:
        answering["max_searches"] = options["max_searches"]
    executions = {"max_executions": options["max_executions"]} if "max_executions" in options else {}
    search = {"limit": options.get("search_limit"), "max_context_chars": options.get("context_chars")}
    decided = {
        "environment": "development",
        "storage": {"auto_vacuum": False},
        "embeddings": {"model": embedding} | batch,
        "reranking": _reranking(endpoints.get("reranker"), options),
        "qa": answering | (executions if merged_code else {}),
        "search": {name: value for name, value in search.items() if value is not None},
        "prompts": {"domain_preamble": preamble or ""},
    }
    if executions and not merged_code:
        decided["analysis"] = executions
    return merged(merged({"processing": _processing(options)}, options.get("config") or {}), decided)


def app_config(*args: Any, **words: Any) -> Any:
    """Return ``config_values`` as the library's own object.

    Raises:
        Failed: the library does not know a setting.
    """
    import pydantic
    from haiku.rag.config.models import AppConfig

    try:
        return AppConfig.model_validate(config_values(*args, **words))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Failed("fatal", f"haiku.rag's configuration, {place}: {one_line(first['msg'])}") from error
