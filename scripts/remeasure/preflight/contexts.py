"""Whether the longest request fits into a model's context, answer included."""

from remeasure.preflight.askings import Target
from remeasure.preflight.surveys import Asked, Survey


def problems(place: str, target: Target, survey: Survey, said: int | None, counted: int | None) -> list[str]:
    """Return what is wrong with the context length.

    Args:
        place: where, as a problem begins.
        target: the model; its ``context_tokens`` counts where the endpoint is silent or says more.
        survey: its requests.
        said: context length that the endpoint states, null where it does not.
        counted: prompt tokens of ``survey.widest`` as the endpoint counted them; goes before the formula.

    Source:
        Pitfall P40 of the page-image study: 65,536 tokens were assumed, the server ran with 32,768, and
        requests were refused in the middle of a run.
    """
    stated = target.spec.context_tokens
    known = [tokens for tokens in (said, stated) if tokens is not None]
    found = []
    if said is not None and stated is not None and stated > said:
        found.append(
            f"{place} serves a context of {said:,} tokens, context_tokens says {stated:,}; start it with the "
            "longer one, or correct the setting"
        )
    for asked, prompt_tokens, how in _lengths(survey, counted) if known else ():
        if prompt_tokens + asked.max_tokens > min(known):
            found.append(_too_long(place, asked, prompt_tokens, how, min(known)))
            break  # the others have the same remedy
    return found


def _lengths(survey: Survey, counted: int | None) -> list[tuple[Asked, int, str]]:
    """Return the requests that count, with their prompt tokens and how these are known."""
    measured = [(survey.widest, counted, "counted by the server")] if survey.widest and counted else []
    if survey.longest is None or (measured and survey.longest == survey.widest):
        return measured
    how = f"by formula, up to {survey.longest.error:.0%} off"
    how += "" if survey.longest.counts_images else ", images not counted"
    return [*measured, (survey.longest, survey.longest.prompt_tokens, how)]


def _too_long(place: str, asked: Asked, prompt_tokens: int, how: str, limit: int) -> str:
    total = prompt_tokens + asked.max_tokens
    parts = f"{prompt_tokens:,} prompt tokens ({how}) and max_tokens {asked.max_tokens:,}"
    remedy = "serve a longer one, or lower max_tokens or n_shown"
    return f"{place}: {asked.name}: {parts}, {total:,} in all, exceed the context of {limit:,}; {remedy}"
