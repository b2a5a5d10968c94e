import datetime
import itertools
import shutil
from pathlib import Path

import msgspec
import pytest

from remeasure import preamble, prices
from remeasure.errors import RemeasureError
from remeasure.executors import HttpSettings, Price
from remeasure.plan import Plan

CONFIG = Path(__file__).resolve().parents[2] / "config"


def test_every_row_has_prices_a_day_and_a_source():
    table = prices.load(CONFIG / "prices.yaml")
    assert {"gpt-4.1-2025-04-14", "gpt-4.1-mini", "gpt-4o", "gpt-4o-mini", "free"} <= set(table)
    for name, row in table.items():
        assert row.as_of <= datetime.date(2027, 1, 1) and row.input_usd_per_mtok <= row.output_usd_per_mtok
        assert row.source.startswith("https://") or name == "free"


@pytest.mark.parametrize(
    ("name", "each"),
    [
        # OpenAI's pricing page, standard and batch, per million tokens: input, output.
        ("gpt-4.1-2025-04-14", (2.0, 8.0, 1.0, 4.0)),
        ("gpt-4.1-mini", (0.4, 1.6, 0.2, 0.8)),
        ("gpt-4o", (2.5, 10.0, 1.25, 5.0)),
        ("gpt-4o-mini", (0.15, 0.6, 0.075, 0.3)),
    ],
)
def test_prices_are_those_of_the_named_page(name, each):
    row = prices.row_of(name, "here", CONFIG / "prices.yaml")
    standard = Price(input_usd_per_mtok=each[0], output_usd_per_mtok=each[1])
    batch = Price(input_usd_per_mtok=each[2], output_usd_per_mtok=each[3])
    assert (prices.price_of(row, False, "here"), prices.price_of(row, True, "here")) == (standard, batch)


GOOD = (
    "mine: {input_usd_per_mtok: 1, output_usd_per_mtok: 2, as_of: 2026-11-30, source: 'https://x.example'}\n"
)


def test_a_row_without_batch_prices_cannot_be_used_for_batches(tmp_path):
    (tmp_path / "prices.yaml").write_text(GOOD)
    row = prices.row_of("mine", "here", tmp_path / "prices.yaml")
    assert prices.price_of(row, False, "here") == Price(input_usd_per_mtok=1.0, output_usd_per_mtok=2.0)
    with pytest.raises(RemeasureError, match="here: the row has no batch prices"):
        prices.price_of(row, True, "here")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("as_of: 2026-11-30, ", "", "prices.yaml: mine: .*missing required field `as_of`"),
        ("source: 'https://x.example'", "source: ''", r"prices.yaml: mine: source: .*length >= 1"),
        ("input_usd_per_mtok: 1,", "input_usd_per_mtok: -1,", r">= 0"),
        ("input_usd_per_mtok: 1,", "input_usd_per_mtok: .nan,", r"mine: input_usd_per_mtok"),
        ("input_usd_per_mtok: 1,", "input_usd_per_mtok: .inf,", r"< 1000000"),
        ("input_usd", "imput_usd", "did you mean 'input_usd_per_mtok'?"),
        ("mine: {", "mine: [", "not YAML"),
    ],
)
def test_a_wrong_row_is_one_line_with_row_and_field(tmp_path, old, new, said):
    path = tmp_path / "prices.yaml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(RemeasureError, match=said) as error:
        prices.load(path)
    assert "\n" not in str(error.value)


@pytest.fixture
def plan_of(tmp_path):
    """Return a plan whose run ``mine`` has one hosted model with the given lines."""
    shutil.copytree(CONFIG, tmp_path / "config")
    for name in ("scripts", "envs", "requirements.txt"):
        (tmp_path / name).symlink_to(CONFIG.parent / name)

    numbers = itertools.count()

    def made(model: str, more: str = "") -> Plan:
        made.run = f"mine{next(numbers)}"
        text = f"extends: ci\ntitle: Mine\nmodels:\n  hosted: {{title: H, {model}}}\n{more}"
        (tmp_path / "config" / "runs" / f"{made.run}.yaml").write_text(text)
        return Plan(tmp_path / "config")

    return made


URL = "base_url: https://api.example.com/v1"


def test_a_model_s_money_reaches_its_executor_with_limits_and_ledger(plan_of):
    plan = plan_of(f"{URL}, price: gpt-4o", "limits: {estimate_usd: 3, spend_usd: 5}\n")
    money = plan.executor(plan_of.run, "hosted", None)["money"]
    assert money == {
        "price": {"input_usd_per_mtok": 2.5, "output_usd_per_mtok": 10.0},
        "estimate_usd": 3.0,
        "spend_usd": 5.0,
        "ledger": f"results/{plan_of.run}/spend",
    }
    assert msgspec.convert(plan.executor(plan_of.run, "hosted", None), HttpSettings).money.spend_usd == 5.0


def test_a_batch_service_is_charged_at_batch_prices(plan_of):
    plan = plan_of(f"{URL}, price: gpt-4o, executor: batch")
    assert plan.money(plan_of.run, "hosted")["price"]["output_usd_per_mtok"] == 5.0


def test_models_that_charge_nothing_have_no_money(plan_of):
    plan = plan_of(URL)
    assert plan.money(plan_of.run, "hosted") is None
    assert plan.executor("ci", "judge-smollm2", None)["money"] is None
    plan = plan_of(f"{URL}, price: gpt-4o, replay: results/old")
    assert plan.money(plan_of.run, "hosted") is None


@pytest.mark.parametrize(
    ("model", "limits", "said"),
    [
        (f"{URL}, price: gpt-4.1-2025-4-14", "", "did you mean 'gpt-4.1-2025-04-14'?"),
        (URL, "limits: {spend_usd: 5}\n", "models.hosted: limits are set but the model names no price"),
        (URL, "limits: {estimate_usd: 0}\n", "limits are set but"),
        (
            f"{URL}, image_tokens: qwen3vl",
            "",
            "models.hosted: image formula 'qwen3vl'.*did you mean 'qwen3-vl'?",
        ),
    ],
)
def test_a_wrong_price_or_formula_stops_in_the_first_second(plan_of, model, limits, said):
    plan = plan_of(model, limits)
    with pytest.raises(RemeasureError, match=said) as error:
        preamble.check_run(plan_of.run, plan)
    assert "\n" not in str(error.value) and f"{plan_of.run}.yaml" in str(error.value)


def test_limits_are_no_matter_for_programs_of_ours_and_free_endpoints(plan_of):
    plan = plan_of(f"{URL}, price: free", "limits: {spend_usd: 5}\n")
    preamble.check_run(plan_of.run, plan)
