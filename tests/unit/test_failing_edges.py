"""Every name of a failure has its class; what says that a request is too large."""

import pytest

from remeasure import failing, oversize

# Written down once more by hand: what each is called, and the class of the tables.
CALLED = {
    "server_error": "http_5xx",
    "rejected": "bad_reply",
    "auth": "http_4xx",
    "cut_stream": "connection",
    "not_json": "bad_reply",
    "html": "bad_reply",
    "not_http": "bad_reply",
    "not_a_completion": "bad_reply",
    "expired": "timeout",
    "cancelled": "missing",
    "not_sent": "missing",
    "content_filter": "refused",
    "cut_off": "truncated",
    "APITimeoutError": "timeout",
    "TimeoutError": "timeout",
    "APIConnectionError": "connection",
    "ConnectionError": "connection",
    "RateLimitError": "rate_limit",
    "BadRequestError": "http_4xx",
    "AuthenticationError": "http_4xx",
    "PermissionDeniedError": "http_4xx",
    "NotFoundError": "http_4xx",
    "UnprocessableEntityError": "http_4xx",
    "InternalServerError": "http_5xx",
}


@pytest.mark.parametrize(("called", "kind"), CALLED.items())
def test_every_name_of_a_failure_has_its_class(called, kind):
    assert failing.of_error(f"{called}: something") == kind
    assert failing.of_error(called) == kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "context_overflow"),
        (422, "context_overflow"),
        (404, None),
        (429, None),
        (500, None),
        (None, None),
    ],
)
def test_words_about_a_context_count_behind_two_statuses(status, kind):
    assert oversize.kind_of(status, "This model's maximum context length is 512 tokens.") == kind
    assert oversize.kind_of(status, "top_p must be in (0, 1]") is None
