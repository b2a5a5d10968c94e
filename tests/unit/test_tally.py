"""What asking says while it works."""

from remeasure.tally import Tally, _duration


def test_a_line_counts_outcomes_by_kind_and_failures_by_class():
    tally = Tally(n_done=10, n_total=1000, money=lambda: "0.83 USD")
    for status, error in [("answered", None), ("answered", None), ("cut_off", "cut_off: 9 tokens")]:
        tally.count(status, error)
    for error in ("timeout: no reply", "timeout: no reply", "rejected: status 400"):
        tally.count("failed", error)
    words = tally.line().split(" ")
    assert words[:6] == ["16/1000", "ok=2", "cut_off=1", "failed=3", "(rejected=1,", "timeout=2)"]
    assert tally.line().endswith(" 0.83 USD") and "/s eta " in tally.line()


def test_a_bar_shows_the_share_that_is_done():
    tally = Tally(n_done=500, n_total=1000)
    assert tally.bar().startswith("[############............]  50 % 500/1000 ok=0 failed=0 0.0/s eta ?")


def test_the_time_left_is_told_in_the_unit_that_a_person_would_choose():
    assert [_duration(s) for s in (5, 119, 120, 7199, 7200)] == ["5 s", "119 s", "2 min", "120 min", "2.0 h"]
