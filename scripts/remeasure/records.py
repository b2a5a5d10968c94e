"""The records that pass between stages, one frozen type per JSONL file.

JSON schemas of all of them are generated into ``config/schema/`` (``scripts/write_schemas.py``); a test
compares. Missing values are ``null``, never 0, "" or a sentence.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

# Every request ends in one of these. Only "answered" and, where a published protocol says so, "cut_off" are
# graded; the others are failures with a count of their own.
Status = Literal["answered", "cut_off", "refused", "failed", "not_sent"]


class Record(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all records: immutable, keyword only, unknown fields are errors."""


class Page(Record, kw_only=True):
    """A page of a corpus: one line of ``pages.jsonl``."""

    page_id: str
    """Slug made from the archive path, safe in file names; identity of the page everywhere downstream."""
    path: str
    """Entry path inside the ZIM archive."""
    title: str
    set: str
    """Which disjoint set the page belongs to: test, train, dev, tuning, or all for a user's archive."""


class Fact(Record, kw_only=True):
    """A value that a page states: one line of a ``facts.jsonl``, the raw material of questions."""

    page_id: str
    subject: str
    """Name of what the page is about, as a question would say it."""
    field: str
    """Key of the question templates in the study's settings."""
    value: str
    aliases: tuple[str, ...] = ()
    """Other spellings that count as the same answer."""
    where: Literal["prose", "infobox", "table"]


class ImageRef(Record, kw_only=True):
    """An image by content: where its bytes lie and what they must hash to."""

    sha256: str
    path: str
    """A file, or a zip store when ``member`` is given."""
    member: str | None = None


class Item(Record, kw_only=True):
    """A question: one line of ``items.jsonl``."""

    item_id: str
    """At most 64 characters of ``[A-Za-z0-9_-]``."""
    question: str
    """May be empty where the item is an image that is to be described."""
    images: tuple[ImageRef, ...] = ()
    references: tuple[str, ...] = ()
    """Accepted answers, best first; empty only where the grader compares with none."""
    relevant: tuple[str, ...] = ()
    """Page ids that hold the answer."""
    group: str
    """Cluster for intervals: items of one group are not independent."""
    meta: dict[str, Any] = {}


class TileRef(Record, kw_only=True):
    """One tile of a rendered page."""

    tile_id: str
    """``<page_id>/<index, 4 digits>``."""
    member: str
    """Name inside ``tiles.zip``."""
    sha256: str
    x_px: int = 0
    """Above 0 only for the right-hand columns of a page that is wider than the viewport."""
    y_px: int
    height_px: int
    width_px: int


class PictureRef(Record, kw_only=True):
    """A picture on a rendered page, in page coordinates."""

    picture_id: str
    """``<page_id>/picture-<index, 2 digits>``."""
    x_px: int
    y_px: int
    width_px: int
    height_px: int


class RenderedPage(Record, kw_only=True):
    """Outcome of rendering one page: one line of ``tiles/manifest.jsonl``, failures included."""

    page_id: str
    status: Literal["rendered", "failed"]
    reason: str | None = None
    width_px: int | None = None
    height_px: int | None = None
    tiles: tuple[TileRef, ...] = ()
    pictures: tuple[PictureRef, ...] = ()


class OcrLine(Record, kw_only=True):
    """A text line that OCR found: text, corner coordinates in pixels of the image, confidence 0 to 1."""

    text: str
    box: tuple[int, int, int, int]
    """Left, top, right, bottom."""
    confidence: float


class OcrImage(Record, kw_only=True):
    """What OCR read in one image: one line of ``tiles/ocr.jsonl``; ``sha256`` is of the image's bytes."""

    sha256: str
    tile_id: str
    width_px: int
    height_px: int
    lines: tuple[OcrLine, ...]


class ExtractedPage(Record, kw_only=True):
    """Outcome of text extraction for one page: one line of ``passages/extraction.jsonl``."""

    page_id: str
    status: Literal["extracted", "empty", "failed"]
    reason: str | None = None
    n_chars: int
    n_passages: int


class Passage(Record, kw_only=True):
    """A text chunk of one page: one line of ``passages/passages.jsonl``."""

    passage_id: str
    """``<page_id>/<index, 4 digits>``."""
    page_id: str
    chunk_index: int
    char_offset: int
    n_tokens: int
    text: str
    title: str
    url: str


class Ranked(Record, kw_only=True):
    """A ranked list for one item: one line of ``ranking.jsonl``; best first, no filler ids."""

    item_id: str
    ids: tuple[str, ...]
    scores: tuple[float, ...]


class Request(Record, kw_only=True):
    """A model call in the OpenAI batch line format; images stand as references (``images.to_url``)."""

    custom_id: str
    method: Literal["POST"] = "POST"
    url: Literal["/v1/chat/completions"] = "/v1/chat/completions"
    body: dict[str, Any]


class Turn(Record, kw_only=True):
    """One turn of a conversation."""

    speaker: Literal["user", "agent"]
    text: str


def is_uri(text: str) -> bool:
    """Return whether a text can be a document's uri: one line, not blank, without control characters."""
    is_line = text.splitlines() == [text]
    return is_line and bool(text.strip()) and not any(c < " " or "\x7f" <= c <= "\x9f" for c in text)


class Document(Record, kw_only=True):
    """A document of a dataset: one line of its ``documents.jsonl``."""

    uri: str
    """Its identity in gold labels and citations."""
    title: str
    text: str | None = None
    """Null where it is a file."""
    path: str | None = None
    sha256: str | None = None
    """Of the file."""
    format: Literal["md", "text", "pdf"] = "md"
    metadata: dict[str, str] = {}


class Question(Record, kw_only=True):
    """A question of a dataset: one line of its ``questions.jsonl``."""

    question_id: str
    """As items have it (``requests.safe_id`` of the dataset's own)."""
    original_id: str
    query: str | None = None
    """What is searched for, to the letter; null: it is not searched for on its own."""
    rewrite: str | None = None
    """The same as a sentence that stands alone."""
    turns: tuple[Turn, ...] = ()
    """The conversation, ending with the question; empty: it is not answered."""
    expected: str | None = None
    """The reference answer."""
    relevant: tuple[str, ...] = ()
    """Uris of the documents that hold the answer."""
    group: str
    """The conversation, or the question itself."""
    turn: int | None = None
    """Number in the conversation, from 1."""
    answerability: str | None = None
    strata: dict[str, str] = {}
    """What a table may be broken down by."""


class Hit(Record, kw_only=True):
    """A chunk that a search found, or the best one of a document."""

    uri: str
    chunk: str
    """Id of the chunk in the database."""
    score: float | None = None
    text: str = ""
    """Its beginning, for people to see."""


class Usage(Record, kw_only=True):
    """Tokens of one request that a system sent to its model."""

    input_tokens: int
    output_tokens: int


class Trace(Record, kw_only=True):
    """What a system did for one question; nothing is left out that a number is made from."""

    found: tuple[Hit, ...] = ()
    """Of a search: chunks, best first, as many as its limit."""
    found_documents: tuple[Hit, ...] = ()
    """Of a search: the best chunk of each document, best first, as many documents as its limit."""
    cited: tuple[str, ...] = ()
    """Uris in the order of citation, each once."""
    cited_chunks: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    """Uris that the searches of an answer returned, in order, each once."""
    citation_status: Literal["grounded", "ungrounded", "missing"] | None = None
    requests: tuple[Usage, ...] = ()
    """Of an answer: every request to the model, in order."""
    tools: dict[str, int] = {}
    """Calls by kind: search, cite, execute."""
    events: dict[str, int] = {}
    """What else happened, counted (``systems.contract.EVENTS``)."""
    before: tuple[Turn, ...] = ()
    """Of a live conversation: the turns before the question as they went."""
    seconds: float
    """From the question to the answer, waits for the model included."""


class PlacedPhoto(Record, kw_only=True):
    """A photograph at the top of a ranking."""

    photo: str
    """Its name in the gallery."""
    score: float
    label: Literal["easy", "hard", "junk"] | None = None


class Placed(Record, kw_only=True):
    """Where the labelled photographs of a query stand in the ranking of a whole gallery."""

    n_gallery: int
    """Photographs that were ranked, distractors included."""
    n_positives: dict[str, int]
    """Annotated positives per difficulty (easy, medium, hard)."""
    positions: dict[str, tuple[int, ...]]
    """Per difficulty the positions of its positives from 0, ascending, without junk; ties by index."""
    as_sorted: dict[str, tuple[int, ...]] = {}
    """The same as numpy's default sort of negated scores orders ties, where that differs."""
    n_tied: int = 0
    """Labelled photographs whose score another photograph shares."""
    n_undecoded: int = 0
    """Positives that could not be decoded: they stand last, whatever they show."""
    ignored: dict[str, tuple[int, ...]] = {}
    """Per difficulty where the first stage has what it ignores, from 0, ascending; ties by index."""
    top: tuple[PlacedPhoto, ...] = ()
    """The first of the ranking, junk included, for people to see; of a reranked one that of Medium."""


class Response(Record, kw_only=True):
    """Outcome of one request: one line of ``responses.jsonl``, one for every request, in request order.

    Nothing that differs between two runs of a deterministic model stands here; times and attempts are in the
    journal.
    """

    custom_id: str
    key: str
    """Identity of the answer (``requests.answer_key``)."""
    status: Status
    text: str | None
    finish: str | None = None
    usage: dict[str, int] | None = None
    model: str | None = None
    """Model name as the server reported it."""
    error: str | None = None
    """Class and last message, for every status but ``answered``."""
    trace: Trace | UnsetType = UNSET
    """What a system did; a model that is asked directly has none. Its seconds are those of the first time."""
    placed: Placed | UnsetType = UNSET
    """What a ranker did; its text is the names of the first photographs."""


class JournalEntry(Record, kw_only=True):
    """One outcome as it came in: one line of a ``journal/*.jsonl``, appended at once, never changed."""

    key: str
    """Identity of the answer (``requests.answer_key``)."""
    custom_id: str
    status: Status
    text: str | None
    finish: str | None = None
    usage: dict[str, int] | None = None
    model: str | None = None
    error: str | None = None
    attempts: int
    """How often the request was sent in all, sendings of killed runs included."""
    seconds: float
    """From the first sending to the outcome, waits included."""
    server: str | None = None
    """What answered, as far as it says so: server build and hardware, or where an imported answer stood."""
    wasted: dict[str, int] | None = None
    """What sendings without an outcome used all the same: it is paid for."""
    raw: Any = None
    """The reply's body as it came, decoded; of a system what it carries on to the next turn."""
    trace: Trace | UnsetType = UNSET
    """What a system did."""


class Reading(Record, kw_only=True):
    """A grader's verdict under one reading; a score is null where it leaves the denominator of its metric."""

    verdict: str
    score: float | None
    """Of the grader's first metric, 0 to 1."""
    reason: str
    scores: dict[str, float | None] = {}
    """Of its further metrics, by name."""
    weights: dict[str, int] = {}
    """How often a score counts in the mean of its metric, such as the points that it is the share of; 1 where
    nothing stands here."""


class Failed(Record, kw_only=True):
    """An answer that there is not, or not in full."""

    item_id: str
    role: Literal["reader", "judge"]
    kind: str
    """Class of the failure (``failing.KINDS``)."""
    error: str | None
    """What was said about it."""


class ShownLine(Record, kw_only=True):
    """A line of what a grader took out of an answer or compared it with, for people to see."""

    text: str
    mark: Literal["yes", "no"] | None = None
    """Whether it decided for or against; null: neither."""
    note: str = ""
    """Why, or a number."""


class Shown(Record, kw_only=True, omit_defaults=True):
    """Such lines under a title."""

    title: str
    lines: tuple[ShownLine, ...]
    numbered: bool = True
    """Whether their order means something."""


class Mark(Record, kw_only=True):
    """A stretch of an answer that decided something, for people to see."""

    item_id: str
    start: int
    end: int
    """Characters of that item's reply as it came (``Response.text``), the end excluded."""
    label: str
    readings: tuple[str, ...] = ()
    """The readings that it decided in; none: all."""


class Graded(Record, kw_only=True):
    """The verdict on one unit: one line of ``graded.jsonl``, one for every unit, in item order.

    A unit is what a score is given to: one item with its answer, or several items that are graded together.
    """

    item_id: str
    """Id of the unit; of an item that is graded alone its own."""
    group: str
    status: Status
    """Of a unit of several answers the worst."""
    answer: str | None
    """What was graded, after thinking was stripped; null where there are several answers."""
    grader: str
    """Name and version, for example ``em@1``."""
    judge_key: str | None = None
    judge_status: Status | None = None
    published: Reading
    strict: Reading
    also: dict[str, Reading] = {}
    """Further readings by name, shown beside the two."""
    strata: dict[str, str] = {}
    """What the table may be broken down by: name of a division to the part that the unit belongs to."""
    counts: dict[str, int] = {}
    """Further things counted in the unit's answers; summed up in the cell."""
    marks: tuple[Mark, ...] = ()
    shown: tuple[Shown, ...] = ()
    """What was taken out of the answer and how it fared, for the page."""
    failed: tuple[Failed, ...] = ()
    """Answers of readers and judges that there are not, or not in full."""


class Number(Record, kw_only=True):
    """One metric of a cell under one reading; null where nothing was graded."""

    value: float | None
    """A share of 0 to 1, a difference of such, or a number of another scale (``graders.MetricName.kind``).
    With ``n`` 0 what the original says where nothing was graded."""
    n: int
    """Units in the denominator; of a weighted metric the sum of their weights."""
    interval: tuple[float, float] | None = None
    interval_method: str


class Metric(Record, kw_only=True):
    """One metric of a cell under all readings."""

    published: Number
    strict: Number
    also: dict[str, Number] = {}
    n_differ: int
    """Units whose score differs between the published and the strict reading."""


class Score(Record, kw_only=True):
    """The numbers of one cell: ``score.json``."""

    study: str
    bench: str
    arm: str
    model: str
    grader: str
    reader: str
    judge: str | None
    corpus: str | None
    headline: str
    """Name of the metric that the item scores are of; the others stand in ``Reading.scores``."""
    metrics: dict[str, Metric]
    """By name."""
    n: int
    """Units."""
    n_answers: int
    """Requests: more than units where several answers are graded together."""
    n_empty: int
    """Answered with nothing."""
    n_words_mean: float | None
    """Words per answer that is not empty; null without any."""
    n_words_median: float | None
    statuses: dict[str, int]
    """Count of answers per response status."""
    judge_statuses: dict[str, int] = {}
    verdicts: dict[str, int]
    verdicts_strict: dict[str, int]
    counts: dict[str, int] = {}
    """What the grader counted further (``Graded.counts``)."""
    failed: dict[str, int] = {}
    """Count of readers' answers per class of failure."""
    judge_failed: dict[str, int] = {}
    """Count of judges' replies per class of failure."""
    method: dict[str, str] = {}
    """What the grader worked with: word lists, versions of rules."""
    recall_at_k: float | None = None
    """Share of items with a relevant page among the shown ones; null where nothing was retrieved."""
    k: int | None = None

    @property
    def main(self) -> Metric:
        """The headline metric."""
        return self.metrics[self.headline]


class Stage(Record, kw_only=True):
    """What a stage read, with which settings, and what it wrote: the record beside its outputs.

    Chains of these lead from a number to the bytes that came from outside.
    """

    stage: str
    settings: dict[str, Any]
    code: str
    """Fingerprint of the script (``fingerprint.of_script``)."""
    packages: dict[str, str] = {}
    """Versions of the packages that can change this stage's result."""
    inputs: dict[str, str]
    """Path to SHA-256."""
    outputs: dict[str, str]
    """Path to SHA-256."""
    counts: dict[str, int] = {}
    facts: dict[str, Any] = {}
    """Further facts of this stage (browser version, fonts, dimensions)."""
