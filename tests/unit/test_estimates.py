"""From request files and questions to what they will cost, through the scripts that rules call."""

import csv
import json
from pathlib import Path

import pytest
from PIL import Image

import estimate_cost
import make_estimate
from remeasure import estimates, images, jsonl, requests
from remeasure.errors import RemeasureError
from remeasure.estimates import Estimate, Range
from remeasure.executors import BatchSettings, HttpSettings, Money, Price, ReplaySettings, ServerSettings
from remeasure.files import sha256_file
from remeasure.image_check import Inspector
from remeasure.kept import History
from remeasure.plan import Plan
from remeasure.prices import PriceRow
from remeasure.records import ImageRef, Item, JournalEntry
from remeasure.wiring import Wiring

# 100 letters and spaces: 21 tokens, with message and request 28.
TEXT = "abcd " * 20
IDENTITY = {"revision": "1"}
ROW = {
    "name": "mine",
    "input_usd_per_mtok": 2.0,
    "output_usd_per_mtok": 8.0,
    "as_of": "2026-11-30",
    "source": "https://prices.example",
}


def money(**limits) -> dict:
    price = {"input_usd_per_mtok": 2.0, "output_usd_per_mtok": 8.0}
    return {"price": price, "ledger": "results/r/spend"} | limits


def http(**words) -> dict:
    plain = {"kind": "http", "base_url": "https://api.example.com/v1", "dialect": "openai"}
    return plain | {"concurrency": 4, "timeout_s": 60, "money": money()} | words


class Cell:
    """A cell's files in a folder, and the script over them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys: list[str] = []

    def ask(self, *contents, max_tokens: int = 200, **words) -> None:
        lines = []
        for n, content in enumerate(contents):
            messages = [{"role": "user", "content": content}]
            body = requests.Body(model="slug", messages=messages, max_tokens=max_tokens, **words)
            lines.append(requests.make_request(f"q{n}", body))
        jsonl.write(self.folder / "requests.jsonl", lines)
        digest = requests.identity_digest(IDENTITY)
        self.keys = [requests.answer_key(line.body, "slug", digest, 0) for line in lines]

    def keep(self, key: str, seconds: float = 3.0, status="answered", file="answers.jsonl", **words) -> None:
        entry = JournalEntry(
            key=key, custom_id="q", status=status, text="x", attempts=1, seconds=seconds, **words
        )
        (self.folder / "journal").mkdir(exist_ok=True)
        with open(self.folder / "journal" / file, "ab") as stream:
            stream.write(jsonl.encode(entry) + b"\n")

    def run(self, executor: dict, *more: str, **settings) -> int:
        (self.folder / "executor.json").write_text(json.dumps(executor))
        plain = {"model": "slug", "identity": IDENTITY, "price": ROW if executor.get("money") else None}
        words = ["--settings", json.dumps(plain | settings), "--images-root", str(self.folder)]
        words += ["--executor", str(self.folder / "executor.json"), "--journal", str(self.folder / "journal")]
        if "--items" not in more:
            words += ["--requests", str(self.folder / "requests.jsonl")]
        return estimate_cost.main([*words, *more, "--out", str(self.folder / "estimate.json")])

    def estimate(self, executor: dict, *more: str, **settings) -> Estimate:
        assert self.run(executor, *more, **settings) == 0
        return jsonl.read_json(self.folder / "estimate.json", Estimate)


@pytest.fixture
def cell(tmp_path) -> Cell:
    return Cell(tmp_path)


def test_an_estimate_is_tokens_dollars_and_what_they_rest_on(cell):
    cell.ask(TEXT, TEXT + "x")
    found = cell.estimate(http())
    assert (found.n_requests, found.n_known, found.n_images, found.image_tokens) == (2, 0, 0, 0)
    # 201 characters are 42.21 tokens, 43; two messages and two requests are 14 more.
    assert (found.text_tokens, found.text_error) == (57, 0.15)
    assert (found.output_tokens, found.output_tokens_most) == (220, 400)
    # 57 * 2 + 220 * 8; 57 * 0.85 * 2 + 2 * 8; 57 * 1.15 * 2 + 400 * 8, in millionths.
    assert found.usd == Range(low=0.000113, expected=0.001874, high=0.003331)
    assert found.seconds is None
    assert (found.price.name, found.price.as_of.isoformat()) == ("mine", "2026-11-30")
    assert found.notes == ("output: 110 tokens per answer, 1450 with thinking (assumed)",)


def test_the_same_cell_gives_the_same_bytes(cell):
    cell.ask(TEXT)
    cell.estimate(http())
    before = (cell.folder / "estimate.json").read_bytes()
    cell.estimate(http())
    assert (cell.folder / "estimate.json").read_bytes() == before
    assert str(cell.folder).encode() not in before


def test_kept_answers_cost_nothing_and_teach_length_and_time(cell):
    cell.ask(TEXT, TEXT + "1", TEXT + "2", TEXT + "3")
    cell.keep(cell.keys[0], 2.0, usage={"prompt_tokens": 30, "completion_tokens": 10})
    cell.keep(cell.keys[1], 8.0, status="cut_off", usage={"completion_tokens": 30, "total_tokens": 60})
    cell.keep(cell.keys[2], 99.0, status="failed", usage={"completion_tokens": 200})
    cell.keep("another answer's", 2.0, file="2of2.jsonl")
    found = cell.estimate(http(concurrency=1))
    assert (found.n_requests, found.n_known) == (4, 2)
    assert found.output_tokens == 40  # two requests, mean of 10 and 30
    assert found.seconds == 4.0  # two requests, median of 2, 2 and 8 seconds
    assert found.notes == ("output: mean of kept answers, 20.0 tokens",)


def test_a_line_that_is_being_written_is_passed_over_and_nothing_is_changed(cell):
    cell.ask(TEXT)
    cell.keep(cell.keys[0])
    path = cell.folder / "journal" / "answers.jsonl"
    path.write_bytes(path.read_bytes() + b'{"key": "half')
    before = path.read_bytes()
    assert cell.estimate(http()).n_known == 1
    assert path.read_bytes() == before and len(list(path.parent.iterdir())) == 1


def test_damage_in_the_middle_of_a_journal_stops_with_file_and_line(cell, capsys):
    cell.ask(TEXT)
    cell.keep("a")
    with open(cell.folder / "journal" / "answers.jsonl", "ab") as stream:
        stream.write(b"torn\n")
    cell.keep("b")
    assert cell.run(http()) == 2
    assert "answers.jsonl line 2: damaged journal line" in capsys.readouterr().err


def test_equal_questions_are_asked_and_paid_once(cell):
    cell.ask(TEXT, TEXT)
    found = cell.estimate(http())
    assert (found.n_requests, found.n_known, found.output_tokens_most) == (2, 1, 200)


def picture(folder: Path, name: str = "a.png", size: tuple[int, int] = (1024, 1024)) -> dict:
    Image.new("L", size).save(folder / name)
    ref = ImageRef(sha256=sha256_file(folder / name), path=name)
    return {"type": "image_url", "image_url": {"url": images.to_url(ref)}}


def test_images_are_counted_by_the_model_s_formula(cell):
    cell.ask([{"type": "text", "text": TEXT}, picture(cell.folder), picture(cell.folder)])
    found = cell.estimate(http(image_tokens="openai-tiles"))
    assert (found.n_images, found.image_tokens) == (2, 1530)
    # (28 + 1530) * 2 + 110 * 8 millionths; the formula is not in doubt, the text is.
    assert found.usd == Range(low=0.003116, expected=0.003996, high=0.004724)


def test_images_without_a_formula_are_unknown_and_never_nothing(cell):
    cell.ask([{"type": "text", "text": TEXT}, picture(cell.folder)], TEXT)
    found = cell.estimate(http())
    assert (found.n_images, found.image_tokens, found.usd) == (1, None, None)
    assert "images: 1 without a formula; name image_tokens of the model" in found.notes


def test_an_image_that_cannot_be_sent_stops_with_the_request(cell, capsys):
    cell.ask(TEXT, [picture(cell.folder)])
    (cell.folder / "a.png").write_bytes(b"")
    assert cell.run(http(image_tokens="openai-tiles")) == 2
    assert "error: request 'q1': image a.png is empty (0 bytes)" in capsys.readouterr().err


def test_thinking_is_longer_and_no_answer_is_longer_than_it_may_be(cell):
    cell.ask(TEXT, max_tokens=16384, thinking=True)
    assert cell.estimate(http()).output_tokens == 1450
    cell.ask(TEXT, max_tokens=16384)
    assert cell.estimate(http(thinking_default=True)).output_tokens == 1450
    assert cell.estimate(http()).output_tokens == 110
    cell.ask(TEXT, max_tokens=16)
    assert cell.estimate(http()).output_tokens == 16


def test_an_endpoint_without_a_price_is_unknown_and_a_program_of_ours_is_free(cell):
    cell.ask(TEXT)
    unknown = cell.estimate(http(money=None))
    assert unknown.usd is None and "price: none named; name price of the model" in unknown.notes
    server = {"kind": "server", "program": "x.py", "dialect": "embedded", "concurrency": 1, "timeout_s": 1}
    free = cell.estimate(server)
    assert free.usd.high == 0.0 and "price: charges nothing per token" in free.notes


def test_a_judge_is_estimated_before_there_is_an_answer(cell):
    items = [Item(item_id=f"q{n}", question="Who?", references=("Ada",), group="g") for n in range(3)]
    jsonl.write(cell.folder / "items.jsonl", items)
    prompt = cell.folder / "judge.txt"
    prompt.write_text("{{question}} {{predicted_answer}}")
    files = {"files": {"judge_x": str(prompt)}, "sha256": {"judge_x": sha256_file(prompt)}}
    judge = {"model": "slug", "grader": "judge_x", "gold": "first", "max_tokens": 1000}
    judge |= {"sampling": {"temperature": 0.0}, "prompts": {"profile": "own"} | files}
    words = ("--items", str(cell.folder / "items.jsonl"), "--study", "pixelrag")
    found = cell.estimate(http(), *words, judge=judge)
    # "Who? " and 105 times "word ": 529 letters and spaces, 0.21 each, and a mark, 0.6; three times 111.69
    # are 336; 21 for messages and requests.
    assert (found.role, found.n_requests, found.text_tokens) == ("judge", 3, 357)
    assert found.output_tokens_most == 3000
    compared = cell.estimate(http(), *words, judge=judge, n_answers=7)
    assert (compared.n_requests, compared.output_tokens_most) == (7, 7000)
    cell.keep("some verdict's")
    # Whose verdict that is cannot be told before the judge's requests are there.
    assert cell.estimate(http(), *words, judge=judge).n_known == 0


def test_a_study_says_how_long_its_answers_are(cell):
    cell.ask(TEXT, max_tokens=16384)
    found = cell.estimate(http(), answer_tokens=300)
    # 28 * 2 + 300 * 8 millionths.
    assert (found.output_tokens, found.usd.expected) == (300, 0.002456)
    assert found.notes == ("output: 300 tokens per answer, 1640 with thinking (assumed)",)
    cell.ask(TEXT, max_tokens=16384, thinking=True)
    assert cell.estimate(http(), answer_tokens=300).output_tokens == 1640
    cell.keep("another's", usage={"completion_tokens": 7})
    assert cell.estimate(http(), answer_tokens=300).output_tokens == 7


def test_a_judge_reads_answers_as_long_as_the_study_says(cell):
    jsonl.write(
        cell.folder / "items.jsonl", [Item(item_id="q", question="Who?", references=("A",), group="g")]
    )
    prompt = cell.folder / "judge.txt"
    prompt.write_text("{{predicted_answer}}")
    files = {"files": {"judge_x": str(prompt)}, "sha256": {"judge_x": sha256_file(prompt)}}
    judge = {"model": "slug", "grader": "judge_x", "gold": "first", "max_tokens": 1000}
    judge |= {"sampling": {"temperature": 0.0}, "prompts": {"profile": "own"} | files}
    words = ("--items", str(cell.folder / "items.jsonl"), "--study", "pixelrag")
    found = cell.estimate(http(), *words, judge=judge, judged_tokens=300, answer_tokens=28)
    # 286 times "word " are 300.3 tokens (the space at the end may go), 7 for message and request.
    assert found.text_tokens == 308 and found.output_tokens == 28
    assert found.notes == (
        "output: 28 tokens per answer, 1368 with thinking (assumed)",
        "judge: before its requests are there, every item has an answer of 300 tokens",
    )


def test_a_judge_without_its_settings_is_one_line(cell, capsys):
    jsonl.write(cell.folder / "items.jsonl", [])
    assert cell.run(http(), "--items", str(cell.folder / "items.jsonl")) == 2
    assert "needs --study and the key judge" in capsys.readouterr().err


def sums(n: int, **words) -> estimates.Sums:
    return estimates.Sums(n=n, **words)


PRICE = Price(input_usd_per_mtok=2.0, output_usd_per_mtok=8.0)


def endpoint(**words) -> HttpSettings:
    plain = {"base_url": "https://x/v1", "dialect": "openai", "concurrency": 4, "timeout_s": 1.0}
    return HttpSettings(**(plain | words))


def test_time_comes_from_the_slowest_of_pace_and_limits():
    history = History(median_s=2.0)
    assert estimates.seconds(sums(40), endpoint(), history) == 20.0  # 40 * 2 s, 4 at a time
    assert estimates.seconds(sums(2), endpoint(), history) == 2.0
    two = endpoint(base_url=("https://x/v1", "https://y/v1"))
    assert estimates.seconds(sums(40), two, history) == 10.0
    assert estimates.seconds(sums(40), endpoint(requests_per_minute=60), history) == 40.0
    # 40 * 3 tokens of the chat template and 5,880 of answers, 100 a second.
    slow = endpoint(tokens_per_minute=6000)
    assert estimates.seconds(sums(40, output_tokens=5880.0), slow, History()) == 60.0


def test_time_is_unknown_where_nothing_says_it():
    assert estimates.seconds(sums(40), endpoint(), History()) is None
    batch = BatchSettings(base_url="https://x/v1", dialect="openai")
    assert estimates.seconds(sums(40), batch, History(median_s=2.0)) is None
    assert estimates.seconds(sums(0), batch, History()) == 0.0


def test_nothing_is_sent_above_the_limit():
    way = endpoint(money=Money(price=PRICE, ledger="l", estimate_usd=1.0))
    estimates.check_limit(sums(1, output_tokens=124_999.0), way, "c/requests.jsonl")  # 6 + 999,992 millionths
    with pytest.raises(
        RemeasureError, match=r"c/requests.jsonl: 1 missing requests are estimated at 1.00 USD"
    ):
        estimates.check_limit(sums(1, output_tokens=125_000.0), way, "c/requests.jsonl")


def test_what_cannot_be_priced_is_not_sent_where_there_is_a_limit():
    way = endpoint(money=Money(price=PRICE, ledger="l", estimate_usd=1.0))
    with pytest.raises(RemeasureError, match="3 images cannot be priced.*add `image_tokens`"):
        estimates.check_limit(sums(1, n_images=3, image_tokens=None), way, "c")
    estimates.check_limit(sums(1, n_images=3, image_tokens=None), endpoint(), "c")


def test_kept_and_imported_answers_and_programs_of_ours_charge_nothing():
    server = ServerSettings(program="x.py", dialect="embedded", concurrency=1, timeout_s=1.0)
    for way in (ReplaySettings(folder="f"), server):
        assert estimates.usd(sums(5, output_tokens=1e9), way) == Range(low=0.0, expected=0.0, high=0.0)
    assert estimates.usd(sums(5), endpoint()) is None
    assert estimates.usd(sums(0), endpoint()) == Range(low=0.0, expected=0.0, high=0.0)


def test_calls_are_added_up_one_by_one_and_not_kept(tmp_path):
    def calls():
        for n in range(20_000):
            messages = [{"role": "user", "content": TEXT}]
            yield f"q{n}", {"model": "m", "messages": messages, "max_tokens": 10}

    with Inspector(tmp_path) as inspector:
        found = estimates.of_calls(calls(), inspector, endpoint())
    assert (found.n, found.text_tokens, found.output_tokens) == (20_000, 20_000 * 28, 200_000.0)


def estimate(**words) -> Estimate:
    row = PriceRow(input_usd_per_mtok=2.0, output_usd_per_mtok=8.0, as_of="2026-11-30", source="https://p")
    named = estimates.NamedPrice(name="mine", **{f: getattr(row, f) for f in row.__struct_fields__})
    plain = {"role": "reader", "model": "m", "n_requests": 10, "n_known": 4, "n_images": 3, "text_tokens": 70}
    plain |= {"text_error": 0.15, "image_tokens": 9, "output_tokens": 60, "output_tokens_most": 99}
    plain |= {"usd": Range(low=0.1, expected=0.2, high=0.7), "seconds": 1.5, "price": named, "notes": ("n",)}
    return Estimate(**(plain | words))


def table(folder: Path, *found: Estimate, places: int | None = None) -> list[dict]:
    paths = [folder / f"{n}.json" for n in range(len(found))]
    for path, one in zip(paths, found, strict=True):
        jsonl.write_json(path, one)
    place = {"table": "t1", "study": "s", "bench": "b", "arm": "a"}
    settings = {"run": "r", "places": [place] * (len(found) if places is None else places)}
    words = [
        "--settings",
        json.dumps(settings),
        "--out",
        str(folder / "t.csv"),
        "--estimates",
        *map(str, paths),
    ]
    assert make_estimate.main(words) == (0 if places is None else 2)
    return list(csv.DictReader((folder / "t.csv").open())) if places is None else []


def test_a_table_has_a_row_per_cell_and_model_and_their_sum(tmp_path):
    first, second, last = table(tmp_path, estimate(), estimate(role="judge"))
    assert (first["table"], first["arm"], first["role"], first["run"]) == ("t1", "a", "reader", "r")
    assert (first["price"], first["price_as_of"], first["price_source"]) == (
        "mine",
        "2026-11-30",
        "https://p",
    )
    assert second["role"] == "judge"
    assert (last["table"], last["n_requests"], last["usd"], last["usd_high"]) == (
        "total",
        "20",
        "0.4000",
        "1.4000",
    )
    assert (last["seconds"], last["image_tokens"], last["notes"]) == ("3.0", "18", "")


def test_a_sum_with_an_unknown_part_is_empty_and_says_what_the_rest_makes(tmp_path):
    _, _, last = table(tmp_path, estimate(), estimate(usd=None, seconds=None, image_tokens=None))
    assert (last["usd"], last["seconds"], last["image_tokens"]) == ("", "", "")
    assert last["notes"] == (
        "1 rows without an amount; the others make 0.2000 USD; 1 rows without a time; the others take 1.5 s"
    )


def test_a_sum_of_nothing_known_is_no_sum_of_nothing(tmp_path):
    *_, last = table(tmp_path, estimate(usd=None, seconds=None), estimate(usd=None, seconds=None))
    assert (last["usd"], last["usd_low"], last["usd_high"], last["seconds"]) == ("", "", "", "")
    assert last["notes"] == "no row has an amount; no row has a time"


def test_places_and_estimates_must_belong_together(tmp_path, capsys):
    table(tmp_path, estimate(), places=2)
    assert "--settings names 2 places, --estimates 1 files" in capsys.readouterr().err


FILES = Wiring(Plan(Path(__file__).resolve().parents[2] / "config"))


def test_every_cell_has_an_estimate_for_its_reader_and_one_for_its_judge_where_it_has_one():
    found = FILES.all_estimated("ci")
    # 24 readers, 12 judged cells, 2 judges that are compared, 2 captioners, 6 cells of cases and their judge;
    # one system in eight cells, three of them judged, the other in two, one of them judged; 2 judges of the
    # calibration: 24 + 12 + 2 + 2 + 12 + 11 + 3 + 2.
    assert len(found) == 68
    cell = "results/ci/pixelrag/sqa/base/page-reader-smollm2"
    place = {"table": "table1", "study": "pixelrag", "bench": "sqa", "arm": "base"}
    assert found[f"{cell}/estimate.json"] == found[f"{cell}/judge/estimate.json"] == place
    assert found["results/ci/judges/judge-smollm2/estimate.json"]["arm"] is None
    assert len(FILES.estimates("ci", "table1")["places"]) == 36


def test_an_estimate_is_made_again_when_more_answers_are_kept(tmp_path):
    kept = FILES.kept(f"{tmp_path}/{{bench}}/journal")
    assert kept({"bench": "nq"}) == 0
    (tmp_path / "nq" / "journal").mkdir(parents=True)
    (tmp_path / "nq" / "journal" / "1of2.jsonl").write_bytes(b"12345")
    assert kept({"bench": "nq"}) == 5
