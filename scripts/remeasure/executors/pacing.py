"""Limits per minute that a provider sets: requests and tokens, spread evenly instead of in bursts."""

import time
from collections.abc import Callable

# So much may be sent ahead of an even spread: enough not to sleep before every request of a fast endpoint.
_AHEAD_S = 1.0


class Pace:
    """Admits amounts at an even rate (the generic cell rate algorithm).

    Args:
        per_minute: how much may be admitted per minute; null: as much as comes.
        clock: seconds, monotonic.
    """

    def __init__(self, per_minute: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._s_per_unit = 60.0 / per_minute if per_minute else 0.0
        self._clock = clock
        self._due = clock()

    def wait_s(self, amount: float) -> float:
        """Book an amount; return how long to wait before it may be sent, seconds."""
        if not self._s_per_unit:
            return 0.0
        now = self._clock()
        self._due = max(self._due, now)
        wait = max(0.0, self._due - now - _AHEAD_S)
        self._due += amount * self._s_per_unit
        return wait

    def correct(self, amount: float) -> None:
        """Book what was not foreseen, or give back what was not used (negative)."""
        self._due += amount * self._s_per_unit


class Pacing:
    """Both limits of one endpoint together."""

    def __init__(self, requests_per_minute: float | None, tokens_per_minute: float | None) -> None:
        self._requests, self._tokens = Pace(requests_per_minute), Pace(tokens_per_minute)
        self.is_on = bool(requests_per_minute or tokens_per_minute)

    def wait_s(self, n_tokens: float) -> float:
        """Book one more request of about so many tokens; return how long to wait before it fits, seconds."""
        return max(self._requests.wait_s(1), self._tokens.wait_s(n_tokens))

    def settle(self, n_tokens: float, usage: dict[str, int] | None) -> None:
        """Replace the guess by what the endpoint counted."""
        if usage and "total_tokens" in usage:
            self._tokens.correct(usage["total_tokens"] - n_tokens)
