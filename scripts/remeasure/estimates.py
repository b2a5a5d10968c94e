"""What the missing requests of a cell will cost, and how long they will take, before the first is sent."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from remeasure import executors, requests, tokens
from remeasure.cells import JudgeCell, JudgeSettings
from remeasure.errors import RemeasureError
from remeasure.image_check import Inspector
from remeasure.kept import History
from remeasure.prices import PriceRow
from remeasure.records import Item, Record, Response

# Output of one answer where neither a kept answer nor the study says better, and what thinking adds to it.
# Source: page-image card 10.2, SimpleQA with Qwen3.5-4B: 95 to 118 tokens, with thinking 1,311 to 1,597.
ANSWER_TOKENS, THINKING_TOKENS = 110, 1340
# Answers that do not exist yet are made of this word; it has 1.05 tokens by the character table.
ANSWER_WORD, TOKENS_PER_WORD = "word ", 1.05


class Range(Record, kw_only=True):
    """US dollars."""

    low: float
    """Least text, one token per answer."""
    expected: float
    high: float
    """Most text, every answer as long as ``max_tokens`` allows; sendings that fail are not in it."""


class NamedPrice(PriceRow, kw_only=True):
    """A price row with its name."""

    name: str


class Estimate(Record, kw_only=True):
    """What one cell's requests to one model will cost: ``estimate.json``.

    All figures are of the requests that have no final outcome yet.
    """

    role: Literal["reader", "judge"]
    model: str
    n_requests: int
    """All requests of the cell."""
    n_known: int
    """Requests whose outcome is kept, or that ask what another one asks; they are not sent."""
    n_images: int
    text_tokens: int
    text_error: float
    """Share by which ``text_tokens`` may be wrong."""
    image_tokens: int | None
    """Null where there are images and the model names no formula."""
    output_tokens: int
    """Expected."""
    output_tokens_most: int
    """Sum of ``max_tokens``."""
    usd: Range | None
    """Null where it cannot be known: no price, or images without a formula."""
    seconds: float | None
    """Expected; null where nothing says how fast the model is."""
    price: NamedPrice | None
    notes: tuple[str, ...]
    """Assumptions that the figures rest on, and why figures are missing."""


class EstimateSettings(Record, kw_only=True):
    """Settings of ``estimate_cost``."""

    model: str
    identity: dict[str, Any]
    """As in ``collect_responses``: with it the kept outcomes of these requests are found."""
    price: NamedPrice | None
    judge: JudgeSettings | None = None
    """For a judge: how its requests are worded."""
    answer_tokens: int = ANSWER_TOKENS
    """Expected output of one request, without thinking."""
    judged_tokens: int = ANSWER_TOKENS
    """For a judge: how long the answers are that it is shown, as long as none exists."""
    requests_per_case: float | None = None
    """Of a system: how many requests it sends to its model for one question."""
    input_tokens: int | None = None
    """Of a system: how much such a request holds."""
    n_answers: int | None = None
    """For judges that are compared: how many answers they are shown; null: one per item."""


@dataclass
class Sums:
    """Sums over requests."""

    n: int = 0
    n_messages: int = 0
    n_images: int = 0
    characters: Counter[str] = field(default_factory=Counter)
    image_tokens: int | None = 0
    output_tokens: float = 0.0
    output_tokens_most: int = 0
    read_tokens: float | None = None
    """What a system's model reads in all; null where the text of the requests is all that is read."""
    is_known: bool = True
    """False where a system reads what nothing tells before it is asked."""

    @property
    def text_tokens(self) -> int:
        """All text with what chat templates add."""
        if self.read_tokens is not None:
            return round(self.read_tokens)
        template = tokens.PER_MESSAGE * self.n_messages + tokens.PER_REQUEST * self.n
        return tokens.of_characters(self.characters) + template


def of_calls(
    calls: Iterable[tuple[str, dict[str, Any]]],
    inspector: Inspector,
    way: executors.Way,
    history: History | None = None,
    answer_tokens: int = ANSWER_TOKENS,
) -> Sums:
    """Add up what calls will send and get; streaming, nothing is kept of a call.

    Args:
        calls: (custom_id, neutral body) of what is missing.
        inspector: looks at the images, where the model names a formula.
        way: how the model is reached; says the image formula and whether it thinks when nothing is said.
        history: what earlier outcomes of the cell teach.
        answer_tokens: expected output of one request without thinking, where the history teaches nothing.

    Raises:
        RemeasureError: an image that cannot be sent; names the request.
    """
    sums = Sums()
    thinks = getattr(way, "thinking_default", None)
    mean = history.output_tokens if history else None
    for custom_id, body in calls:
        size = tokens.request_size(
            body, lambda ref, name=custom_id: inspector.size(ref, f"request {name!r}"), way.image_tokens
        )
        sums.n += 1
        sums.n_messages += size.n_messages
        sums.n_images += size.n_images
        sums.characters.update(size.characters)
        if size.image_tokens is None or sums.image_tokens is None:
            sums.image_tokens = None
        else:
            sums.image_tokens += size.image_tokens
        assumed = answer_tokens + (THINKING_TOKENS if body.get("thinking", thinks) else 0)
        sums.output_tokens += min(body["max_tokens"], assumed if mean is None else mean)
        sums.output_tokens_most += body["max_tokens"]
    return sums


def of_system(sums: Sums, settings: EstimateSettings, does: str, history: History) -> Sums:
    """Return the sums of calls to a system, whose model reads what the system finds.

    Args:
        sums: as ``of_calls`` counts questions.
        settings: how many requests a question takes, and what they hold.
        does: what the system does (``systems.contract.DOES``); a search asks no model that answers.
        history: what kept outcomes teach goes before settings.
    """
    if does == "search":
        return replace(sums, read_tokens=0.0, output_tokens=0.0, output_tokens_most=0)
    n_requests = settings.requests_per_case
    most = round(sums.output_tokens_most * (n_requests or 1))
    if history.input_tokens is not None and history.output_tokens is not None:
        read, written = sums.n * history.input_tokens, sums.n * history.output_tokens
        return replace(
            sums, read_tokens=read, output_tokens=written, output_tokens_most=max(most, round(written))
        )
    if n_requests is None or settings.input_tokens is None:
        return replace(sums, is_known=not sums.n)
    return replace(
        sums,
        read_tokens=sums.n * n_requests * settings.input_tokens,
        output_tokens=sums.output_tokens * n_requests,
        output_tokens_most=most,
    )


def usd(sums: Sums, way: executors.Way) -> Range | None:
    """Return what calls will cost.

    Edges:
        0 for a program of ours, for kept and for imported answers: they charge nothing per token. Null for
        an endpoint without a price, for images without a formula, and for a system of which nobody knows what
        its model reads.
    """
    if way.money is None:
        answerer = way.answerer.way if isinstance(way, executors.SystemSettings) and way.answerer else way
        charges = isinstance(answerer, executors.HttpSettings | executors.BatchSettings)
        return None if charges and sums.n else Range(low=0.0, expected=0.0, high=0.0)
    price = way.money.price
    if sums.image_tokens is None or not sums.is_known:
        free = price.input_usd_per_mtok == price.output_usd_per_mtok == 0
        return Range(low=0.0, expected=0.0, high=0.0) if free else None
    error = tokens.text_error(sums.characters)

    def amount(text_share: float, output_tokens: float) -> float:
        read = sums.text_tokens * text_share + sums.image_tokens
        return round((read * price.input_usd_per_mtok + output_tokens * price.output_usd_per_mtok) / 1e6, 6)

    return Range(
        low=amount(1 - error, sums.n),
        expected=amount(1, sums.output_tokens),
        high=amount(1 + error, sums.output_tokens_most),
    )


def seconds(sums: Sums, way: executors.Way, history: History) -> float | None:
    """Return how long calls will take, from the median of kept outcomes and from the endpoint's limits.

    Edges:
        0 for no call; null where neither is known. A batch service promises no time.
    """
    if not sums.n:
        return 0.0
    bounds = []
    if isinstance(way, executors.SystemSettings) and history.median_s is not None:
        bounds.append(sums.n * history.median_s / min(way.concurrency, sums.n))
    if isinstance(way, executors.Endpoint) and history.median_s is not None:
        addresses = getattr(way, "base_url", "")
        lanes = way.concurrency * (1 if isinstance(addresses, str) else len(addresses))
        bounds.append(sums.n * history.median_s / min(lanes, sums.n))
    if isinstance(way, executors.HttpSettings):
        if way.requests_per_minute is not None:
            bounds.append(60 * sums.n / way.requests_per_minute)
        if way.tokens_per_minute is not None and sums.image_tokens is not None:
            all_tokens = sums.text_tokens + sums.image_tokens + sums.output_tokens
            bounds.append(60 * all_tokens / way.tokens_per_minute)
    return round(max(bounds), 1) if bounds else None


def check_limit(sums: Sums, way: executors.Way, where: str, spent_usd: float = 0.0) -> None:
    """Refuse calls that are expected to take a run above ``limits.estimate_usd``; call it before sending.

    Args:
        sums: of the calls.
        way: how the model is reached.
        where: the file that holds the calls.
        spent_usd: what the run has spent already.

    Raises:
        RemeasureError: above the limit, or not to be estimated although there is a limit.
    """
    if way.money is None or way.money.estimate_usd is None:
        return
    limit, found = way.money.estimate_usd, usd(sums, way)
    if found is None:
        raise RemeasureError(
            f"{where}: limits.estimate_usd is {limit:g}, but {sums.n_images} images cannot be priced: the "
            "model names no formula; add `image_tokens` to it, or take the limit out; nothing was sent"
        )
    if found.expected + spent_usd > limit:
        raise RemeasureError(
            f"{where}: {sums.n} missing requests are estimated at {found.expected:.2f} USD ({found.low:.2f} "
            f"to {found.high:.2f}), and {spent_usd:.2f} USD are spent: above limits.estimate_usd {limit:g}; "
            "nothing was sent: results/estimate.csv (a target) says what costs how much; raise the limit, or "
            "ask fewer items"
        )


def judge_calls(
    items: Iterable[Item],
    judge_messages: Callable[[Item, Response, JudgeCell], list[dict[str, Any]]],
    settings: JudgeSettings,
    texts: dict[str, str],
    judged_tokens: int = ANSWER_TOKENS,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what a judge would be asked if every item got an answer of ``judged_tokens`` tokens."""
    text = ANSWER_WORD * round(judged_tokens / TOKENS_PER_WORD)
    cell = JudgeCell(grader=settings.grader, gold=settings.gold, prompts=texts)
    for item in items:
        answer = Response(custom_id=item.item_id, key="", status="answered", text=text)
        body = requests.Body(
            model=settings.model,
            messages=judge_messages(item, answer, cell),
            max_tokens=settings.max_tokens,
            thinking=settings.thinking,
        )
        yield item.item_id, msgspec.to_builtins(body)


def make(
    role: Literal["reader", "judge"],
    settings: EstimateSettings,
    n_requests: int,
    sums: Sums,
    way: executors.Way,
    history: History,
) -> Estimate:
    """Return the record of an estimate.

    Args:
        role: whose requests they are.
        settings: of the stage.
        n_requests: all requests of the cell.
        sums: of the missing ones.
        way: how the model is reached.
        history: what kept outcomes teach.
    """
    amount = usd(sums, way)
    return Estimate(
        role=role,
        model=settings.model,
        n_requests=n_requests,
        n_known=n_requests - sums.n,
        n_images=sums.n_images,
        text_tokens=sums.text_tokens,
        text_error=tokens.text_error(sums.characters),
        image_tokens=sums.image_tokens,
        output_tokens=math.ceil(round(sums.output_tokens, 6)),
        output_tokens_most=sums.output_tokens_most,
        usd=amount,
        seconds=seconds(sums, way, history),
        price=settings.price,
        notes=tuple(_notes(role, settings, sums, amount, way, history)),
    )


def _notes(
    role: str,
    settings: EstimateSettings,
    sums: Sums,
    amount: Range | None,
    way: executors.Way,
    history: History,
) -> Iterator[str]:
    if isinstance(way, executors.SystemSettings):
        yield from _notes_of_system(settings, sums, history)
    elif history.output_tokens is not None:
        yield f"output: mean of kept answers, {history.output_tokens:.1f} tokens"
    else:
        n = settings.answer_tokens
        yield f"output: {n} tokens per answer, {n + THINKING_TOKENS} with thinking (assumed)"
    if role == "judge":
        n = settings.judged_tokens
        yield f"judge: before its requests are there, every item has an answer of {n} tokens"
    if sums.image_tokens is None:
        yield f"images: {sums.n_images} without a formula; name image_tokens of the model"
    if amount is None and way.money is None and sums.is_known:
        yield "price: none named; name price of the model"
    if way.money is None and amount is not None:
        yield "price: charges nothing per token"


def _notes_of_system(settings: EstimateSettings, sums: Sums, history: History) -> Iterator[str]:
    if sums.read_tokens is None:
        yield "system: what its model reads is not known before; name requests_per_case and input_tokens"
    elif not sums.output_tokens_most:
        yield "system: a search asks no model that answers; vectors of queries are not priced"
    elif history.input_tokens is not None:
        said = f"{history.input_tokens:.0f} tokens read and {history.output_tokens:.0f} written"
        yield f"system: mean of kept questions, {said}"
    else:
        each = f"{settings.requests_per_case:g} requests of {settings.input_tokens} tokens"
        yield f"system: {each} for each question, {settings.answer_tokens} tokens written in each (assumed)"
