import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from remeasure import settings
from remeasure.cluster.site import Gpus, Partition, Site
from remeasure.errors import RemeasureError
from remeasure.needs import EncoderNeeds, Needs, RuleResources, check_needs
from remeasure.plan import Plan
from remeasure.wiring import Wiring

ROOT = Path(__file__).resolve().parents[2]
FILES = Wiring(Plan(ROOT / "config"))


def cell(**more) -> SimpleNamespace:
    usual = {"run": "ci", "study": "pixelrag", "bench": "nq", "arm": "base", "model": "page-reader-smollm2"}
    return SimpleNamespace(**(usual | more))


def granted(needs: Needs, attempt: int = 1, site=None) -> dict:
    functions = RuleResources(site).of(lambda _: needs, mem_mb=1000, runtime=30)
    once = {name: functions[name](None) for name in functions if name not in ("mem_mb", "runtime")}
    return once | {name: functions[name](None, attempt) for name in ("mem_mb", "runtime")}


def test_what_a_run_leaves_open_is_what_the_rule_says():
    assert granted(Needs()) == {"gpu": 0, "gpu_model": None, "mem_mb": 1000, "runtime": 30}


def test_what_a_run_says_wins_and_grows_with_attempts():
    needs = Needs(gpu=2, gpu_model="h100", mem_mb=64000, runtime_min=240)
    assert granted(needs, attempt=3) == {"gpu": 2, "gpu_model": "h100", "mem_mb": 192000, "runtime": 720}
    assert granted(Needs(), attempt=2)["mem_mb"] == 2000


def test_threads_are_the_rules_unless_a_run_says_otherwise():
    assert RuleResources().threads(lambda _: Needs(), 2)(None) == 2
    assert RuleResources().threads(lambda _: Needs(threads=16), 2)(None) == 16


def site(**gpus) -> Site:
    h100 = Partition(max_runtime=60, max_mem_mb=1500, max_gpu=1, available_gpu_models=["h100"])
    return Site({"big": h100, "cpu": Partition(max_mem_mb=900)}, Gpus(**gpus))


def test_growth_ends_at_what_the_partition_gives():
    needs = Needs(gpu=1, gpu_model="h100")
    assert granted(needs, attempt=3, site=site()) == {
        "gpu": 1,
        "gpu_model": "h100",
        "mem_mb": 1500,
        "runtime": 60,
    }


def test_where_gpus_have_no_types_the_partition_and_its_feature_lead_to_the_model():
    untyped = site(typed=False, features={"h100": "h100&80g"})
    asked = granted(Needs(gpu=1, gpu_model="h100"), site=untyped)
    assert (asked["gpu"], asked["gpu_model"]) == (1, None)
    assert (asked["slurm_partition"], asked["constraint"]) == ("big", "h100&80g")
    plain = granted(Needs(mem_mb=800), site=untyped)
    assert (plain["slurm_partition"], plain["constraint"]) == (None, None)


def test_what_the_profile_wants_of_every_node_is_kept_beside_the_feature():
    def asked(needs, **usual):
        here = site(typed=False, features={"h100": "h100|h200"})
        named = RuleResources(here, usual).of(lambda _: needs, mem_mb=800, runtime=30)
        return named["slurm_partition"](None), named["constraint"](None)

    gpu = Needs(gpu=1, gpu_model="h100")
    assert asked(gpu, constraint="ib", slurm_partition="cpu,big") == ("big", "ib&(h100|h200)")
    assert asked(Needs(), constraint="ib", slurm_partition="cpu,big") == ("cpu,big", "ib")
    assert asked(gpu) == ("big", "(h100|h200)")


def test_a_site_that_has_another_model_is_sent_that():
    here = Site({"big": Partition(max_gpu=1, available_gpu_models=["a100"])}, Gpus(instead={"h100": "a100"}))
    assert granted(Needs(gpu=1, gpu_model="h100"), site=here)["gpu_model"] == "a100"


def test_a_model_of_gpu_without_a_number_is_one_line():
    needs = EncoderNeeds(embed=Needs(gpu_model="a10g"))
    with pytest.raises(RemeasureError, match=r"^here\.embed: gpu_model 'a10g' but gpu: 0; say how many"):
        check_needs(needs, "here")


def load(tmp_path, text: str):
    for name in ("runs", "studies"):
        (tmp_path / name).mkdir()
    embedded = (ROOT / "config/runs/embedded.yaml").read_text()
    (tmp_path / "runs/embedded.yaml").write_text(embedded)
    (tmp_path / "runs/mine.yaml").write_text(f"extends: embedded\n{text}")
    return settings.load_run(tmp_path, "mine")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: {page-reader-smollm2: {needs: {gpu: 0}}}", "gpu_model 'h100' but gpu: 0"),
        (
            "models: {judge-cross-encoder: {needs: {gpu: 1}}}",
            r"but no node is started for it \(where",
        ),
        ("models: {page-reader-smollm2: {where: moon}}", "Invalid enum value 'moon'"),
        ("encoders: {ocr-bge: {needs: {embedd: {gpu: 1}}}}", "unknown field `embedd`.*embed"),
        ("encoders: {ocr-bge: {needs: {embed: {gpu_model: 'a b'}}}}", "Expected `str` matching"),
    ],
)
def test_a_mistake_in_needs_is_one_line_with_its_place(tmp_path, text, said):
    with pytest.raises(RemeasureError, match=said) as raised:
        load(tmp_path, text)
    assert "\n" not in str(raised.value)


def test_an_endpoint_is_asked_on_the_login_node_and_a_program_of_ours_on_a_node(tmp_path):
    model = "models: {far: {title: x, base_url: 'https://api.example.org/v1', price: free}}"
    models = load(tmp_path, model).models
    assert models["far"].on_login()
    assert not models["page-reader-smollm2"].on_login()
    assert models["judge-cross-encoder"].on_login()


def test_every_step_asks_for_the_gpu_that_its_model_names():
    assert FILES.ask_needs(cell()).gpu_model == "h100"
    assert FILES.judge_needs(cell()) == Needs()
    assert FILES.encoder_needs(cell(encoder="ocr-bge")).embed.gpu_model == "a10g"
    assert FILES.encoder_needs(cell(encoder="ocr-bge-trained")).train.gpu_model == "h100"
    assert FILES.encoder_needs(cell(encoder="text-bge")).embed.gpu == 0
    assert FILES.search_needs(cell(arm="lora")).gpu_model == "a10g"
    assert FILES.search_needs(cell(arm="traf")).gpu == 0


@pytest.mark.parametrize(
    ("role", "path", "matches"),
    [
        ("judge", "results/ci/pixelrag/nq/base/page-reader-smollm2/judge/responses.jsonl", True),
        ("judge", "results/ci/other/nq/base/page-reader-smollm2/judge/responses.jsonl", False),
        ("reader", "results/ci/pixelrag/nq/base/page-reader-smollm2/responses.jsonl", False),
        ("reader", "results/ci/pixelrag/nq/base/judge-cross-encoder/responses.jsonl", True),
        ("reader", "results/ci/pixelrag/nq/base/judge-cross-encoder/judge/responses.jsonl", False),
        ("agreement", "results/ci/judges/judge-cross-encoder/responses.jsonl", True),
        ("agreement", "results/ci/judges/judge-smollm2/responses.jsonl", False),
    ],
)
def test_only_models_on_the_login_node_are_asked_there(role, path, matches):
    assert bool(re.match(f"results/(?P<run>{FILES.on_login(role)})/", path)) is matches


@pytest.mark.parametrize(
    ("step", "path", "matches"),
    [
        ("pages", "results/paper/corpora/wikipedia/pages.jsonl", True),
        ("pages", "results/paper/corpora/news/pages.jsonl", True),
        ("pages", "results/paper/corpora/newsreel/pages.jsonl", False),
        ("pages", "results/ci/corpora/factbook/pages.jsonl", False),
        ("items", "results/paper/pixelrag/livevqa/items.jsonl", True),
        ("items", "results/ci/pixelrag/livevqa/items.jsonl", False),
        ("requests", "results/paper/pixelrag/nq/traf/qwen3-5-4b/requests.jsonl", True),
        ("requests", "results/paper/pixelrag/nq/naive/qwen3-5-4b/requests.jsonl", False),
        ("requests", "results/ci/pixelrag/nq/traf/page-reader-smollm2/requests.jsonl", False),
    ],
)
def test_steps_that_read_a_whole_corpus_are_jobs_where_it_is_in_parts(step, path, matches):
    assert bool(re.match(f"results/(?P<run>{FILES.large(step)})/", path)) is matches
