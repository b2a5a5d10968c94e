"""Limits per minute, with a clock that a test turns."""

from remeasure.executors.pacing import Pace


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_is_within_the_rate_goes_at_once_and_what_is_beyond_waits_in_line():
    clock = Clock()
    pace = Pace(60, clock)  # one a second, one second ahead
    assert [pace.wait_s(1) for _ in range(4)] == [0.0, 0.0, 1.0, 2.0]
    clock.now += 4
    assert pace.wait_s(1) == 0.0


def test_idle_time_is_not_saved_up():
    clock = Clock()
    pace = Pace(60, clock)
    clock.now += 3600
    assert [pace.wait_s(1) for _ in range(3)] == [0.0, 0.0, 1.0]


def test_an_amount_above_a_minutes_worth_goes_and_the_next_one_pays_for_it():
    pace = Pace(600, Clock())  # ten a second
    assert pace.wait_s(1200) == 0.0
    assert pace.wait_s(1) == 119.0


def test_a_guess_is_replaced_by_what_was_counted():
    pace = Pace(600, Clock())
    pace.wait_s(100)  # ten seconds' worth
    pace.correct(-50)
    assert pace.wait_s(1) == 4.0
    pace.correct(100)
    assert round(pace.wait_s(1), 6) == 14.1


def test_without_a_limit_nothing_waits():
    pace = Pace(None, Clock())
    assert [pace.wait_s(10**9) for _ in range(3)] == [0.0] * 3
