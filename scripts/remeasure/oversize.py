"""What servers say when a request is too large for them: as bytes on the way, or as tokens in the context."""

import re

PAYLOAD_TOO_LARGE = "payload_too_large"
CONTEXT_OVERFLOW = "context_overflow"
KINDS = (PAYLOAD_TOO_LARGE, CONTEXT_OVERFLOW)

# OpenAI's code; llama.cpp's type, which older versions send with status 500.
_CODES = ("context_length_exceeded", "exceed_context_size_error")
_CONTEXT = re.compile(
    r"maximum context length is"  # vLLM, OpenAI
    r"|longer than the maximum model length"  # vLLM, where images are counted after the text
    r"|context length is only"  # vLLM 0.11 and later
    r"|tokens exceed the configured limit|exceeds the context window"  # OpenAI, newer models
    r"|exceeds? the available context size",  # llama.cpp
    re.IGNORECASE,
)
_PAYLOAD_STATUS = 413
_REFUSED = (400, 422)


def kind_of(status: int | None, text: str, codes: tuple[object, ...] = ()) -> str | None:
    """Return the class of an error that says that a request is too large; null for all others.

    Args:
        status: HTTP status; null where it is not known.
        text: what was said.
        codes: ``code`` and ``type`` of the error, whatever they hold.

    Source:
        vLLM 0.32 (recorded in ``tests/data/vllm``), OpenAI's and llama.cpp's (server, after pull request
        15780) error objects; status 413 is HTTP's own, most often of a proxy.
    """
    if status == _PAYLOAD_STATUS:
        return PAYLOAD_TOO_LARGE
    if any(code in _CODES for code in codes if isinstance(code, str)):
        return CONTEXT_OVERFLOW
    return CONTEXT_OVERFLOW if status in _REFUSED and _CONTEXT.search(text) else None
