"""The one exception for everything that a user can repair."""


class RemeasureError(Exception):
    """A mistake in input, settings or surroundings that the user can repair.

    The text is one line with four parts: what is wrong, where (file, line or item id), what was found and
    what was expected, and what to do next. ``cli.run`` prints it without a traceback and exits with 2.
    """


class ToBeContinued(Exception):
    """The end of a step that was told to end before all was done, and that the same command goes on with.

    The text is one line that says how far it is; ``cli.run`` prints it last and exits with 75.
    """


def did_you_mean(word: str, known, at_least: float = 0.6) -> str:
    """Return " (did you mean 'x'?)" for the closest known word, or an empty string.

    Args:
        word: what was found.
        known: what could stand in its place.
        at_least: how alike two words must be, 0 to 1: the share of their letters that agree.
    """
    import difflib

    close = difflib.get_close_matches(str(word), [str(name) for name in known], n=1, cutoff=at_least)
    return f" (did you mean {close[0]!r}?)" if close else ""
