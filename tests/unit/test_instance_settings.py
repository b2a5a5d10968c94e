"""What a run says of photographs, heads and galleries: mistakes are one line, and paths follow the names."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from remeasure import lineage, reach, settings
from remeasure.errors import RemeasureError
from remeasure.instances.settings import Archives
from remeasure.plan import Plan
from remeasure.wiring import Wiring

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "config", folder / "config")
    for name in ("scripts", "envs", "requirements.txt"):
        (folder / name).symlink_to(ROOT / name)
    return folder / "config"


def written(config: Path, text: str) -> Plan:
    (config / "runs" / "mine.yaml").write_text(f"extends: embedded\ntitle: t\n{text}")
    settings.load_run.cache_clear()
    return Plan(config)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("photo_sets: {buildings: {labels: null}}", "photo_sets.buildings: lacks labels"),
        ("photo_sets: {views: {list: null}}", "photo_sets.views: lacks list"),
        ("photo_sets: {views: {archives: null}}", "photo_sets.views: lacks archives"),
        ("photo_sets: {buildings: {parts: 2}}", "a benchmark is one part"),
        ("photo_sets: {views: {parts: 5}}", "parts: 5, and there are 4 archives"),
        ("heads: {standard: {training: views}}", "'views' is a set of role distractors"),
        ("heads: {standard: {backbone: dino}}", "backbone 'dino' is not defined"),
        (
            "heads: {standard: {select_on: building}}",
            "gallery 'building' is not defined (did you mean 'buildings'?)",
        ),
        (
            "heads: {standard: {report_on: [objects-views]}}",
            "gallery 'objects-views' has distractors, and a head is measured without",
        ),
        ("rerankers: {ames-small: {training: null}}", "give either files: {checkpoint: …} or training"),
        (
            "photo_sets: {views: {archives: {place: /data/views.tar}}}",
            "photo_sets.views.archives.place: '/data/views.tar' has no {number}, and there are 4 archives",
        ),
        ("photo_sets: {views: {archives: {numbers: [1, 1000000000000]}}}", "archives, at most 100000"),
        ("backbones: {efficientnet: {scales: []}}", "backbones.efficientnet.scales: empty"),
        (
            "backbones: {efficientnet: {max_px: 31}}",
            "efficientnet.max_px: 31, less than a patch (32)",
        ),
        ("rerankers: {ames-small: {heads: 3}}", "width: 64 cannot be shared by 3 heads"),
        (
            "rerankers: {ames-small: {tokens_gallery: 101}}",
            "tokens_gallery: 101, and local features 'efficientnet-map' keep 100 of a photograph",
        ),
        ("galleries: {buildings-views: {distractors: places}}", "'places' is a set of role training"),
        ("models: {semantic: {ranker: {backbone: null}}}", "give a head, a backbone or a first_stage"),
        ("models: {semantic: {ranker: {reranker: ames}}}", "reranker 'ames' is not defined"),
        ("models: {semantic: {base_url: 'http://a'}}", "give exactly one of"),
        ("studies: {landmarks: {gallery_of_bench: {roxford5k: no}}}", "studies.landmarks.gallery_of_bench"),
        ("studies: {landmarks: {spread_of: {a: [nobody]}}}", "reader 'nobody' is not defined"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(config, text, said):
    with pytest.raises(RemeasureError) as error:
        written(config, text).run("mine")
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_ranker_of_an_arm_that_the_study_does_not_have_is_named(config):
    plan = written(config, "models: {semantic: {ranker: {arms: [globl]}}}")
    with pytest.raises(RemeasureError, match=r"ranker\.arms: study landmarks has no arm 'globl'"):
        plan.readers("mine", "landmarks", "roxford5k", "global")


def test_reranking_without_a_reranker_is_said_when_the_run_is_planned(config):
    plan = written(config, "models: {head-decon: {ranker: {reranker: null}}}")
    with pytest.raises(RemeasureError, match="reranker: is missing, and arm 'two_stage' reranks"):
        plan.place("mine", "landmarks", "roxford5k", "two_stage", "head-decon")


def test_a_bench_without_a_gallery_is_left_out(config):
    plan = written(config, "studies: {landmarks: {gallery_of_bench: {rparis6k: null}}}")
    with pytest.raises(RemeasureError):
        plan.run("mine")
    only = "{roxford5k: buildings}"
    text = f"studies:\n  landmarks:\n    gallery_of_bench: {only}\n"
    found = {cell.bench for cell in written(config, text).cells_of("landmarks", "mine")}
    assert "roxford5k" in found


def test_a_head_is_given_every_photo_set_once_in_the_order_of_its_settings(config):
    head = "heads: {standard: {select_on: objects, report_on: [walls, buildings]}}"
    plan = written(config, f"galleries: {{walls: {{photos: buildings}}}}\n{head}")
    told = plan.train_head("mine", "standard", "0")
    # A list: the keys of settings are sorted on their way to a step.
    assert told["photos_of"] == [["objects", "objects"], ["walls", "buildings"], ["buildings", "buildings"]]
    files = Wiring(plan).head_training(SimpleNamespace(run="mine", head="standard", seed="0"))
    assert files["labels"] == [f"results/mine/photos/{name}/labels.json" for name in ("objects", "buildings")]
    assert all(len(files[name]) == 2 for name in ("audits", "gallery_cls", "query_cls"))


def test_archives_go_to_parts_in_order_and_all_of_them():
    # 500 archives of three digits in 50 parts of ten; 100 in 20 of five, numbers not filled (card 1.7).
    gldv2 = Archives(place="https://x/images_{number}.tar", numbers=(0, 500), digits=3)
    assert gldv2.of_part("1of50") == [f"00{n}" for n in range(10)]
    assert gldv2.of_part("50of50") == [str(n) for n in range(490, 500)]
    distractors = Archives(place="r.{number}.tar.gz", numbers=(1, 100))
    assert distractors.of_part("1of20") == ["1", "2", "3", "4", "5"]
    assert distractors.of_part("20of20") == ["96", "97", "98", "99", "100"]
    uneven = Archives(place="r.{number}.tar.gz", numbers=(1, 7))
    parts = [uneven.of_part(f"{n}of3") for n in (1, 2, 3)]
    assert [n for part in parts for n in part] == ["1", "2", "3", "4", "5", "6", "7"]
    assert distractors.paths("1of100") == ["r.1.tar.gz"] and gldv2.paths("1of500") == []


def test_protocols_share_pairs_and_seeds_have_first_stages_of_their_own():
    plan = Plan(ROOT / "config")
    assert plan.reranked("paper", "roxford5k-1m", "ames") == ["standard-0-published", "decon-0-published"]
    assert plan.reranked("paper", "roxford5k", "ames") == [
        "standard-0-published",
        "decon-0-published",
        "given-superglobal",
    ]
    assert list(plan.projections("paper")) == [
        "standard-0-published",
        "standard-1-published",
        "standard-2-published",
        "standard-0-holdout",
        "decon-0-published",
        "decon-1-published",
        "decon-2-published",
        "decon-0-holdout",
    ]


def test_published_descriptors_are_read_where_they_are_given_and_made_elsewhere():
    files = Wiring(Plan(ROOT / "config"))
    at = SimpleNamespace(run="paper", photos="roxford5k", piece="1of1", reranker="ames")
    assert files.tokens(at)["locals"] == "results/sources/landmarks/ames/roxford5k/dinov2_gallery_local.hdf5"
    at.reranker = "ames-photos"
    assert files.tokens(at)["locals"] == "results/paper/photos/roxford5k/locals/dinov2-locals-photos/1of1.h5"
    at.photos, at.reranker, at.piece = "revisitop1m", "ames", "3of20"
    assert files.tokens(at)["locals"] == "results/paper/photos/revisitop1m/locals/dinov2-locals/3of20.h5"


def test_distractors_wait_for_shortlists_and_for_the_check_of_our_descriptors():
    files = Wiring(Plan(ROOT / "config"))
    at = SimpleNamespace(run="paper", photos="revisitop1m", piece="1of20", local="dinov2-locals")
    found = files.locals(at)
    assert found["wanted"] == "results/paper/photos/revisitop1m/wanted.parquet"
    assert found["checked"] == ["results/paper/photos/roxford5k/locals/dinov2-locals/check.json"]
    wanted = files.wanted(SimpleNamespace(run="paper", photos="revisitop1m"))
    assert len(wanted["first"]) == 4  # two galleries, two heads


def test_rankings_with_distractors_reuse_the_pairs_without():
    files = Wiring(Plan(ROOT / "config"))
    found = files.pairs(SimpleNamespace(run="paper", gallery="roxford5k-1m", reranker="ames"))
    assert found["known"] == ["results/paper/galleries/roxford5k/pairs/ames.parquet"]
    assert len(found["tokens"]) == 21
    # Published local descriptors beside ours: only where a comparison says that they agree.
    assert found["checked"] == ["results/paper/photos/roxford5k/locals/dinov2-locals/check.json"]
    plain = files.pairs(SimpleNamespace(run="paper", gallery="roxford5k", reranker="ames"))
    assert not {"known", "checked"} & set(plain)
    ours = files.pairs(SimpleNamespace(run="paper", gallery="roxford5k-1m", reranker="ames-photos"))
    assert "checked" not in ours


def test_every_raw_input_of_the_rankings_is_brought():
    sources = Plan(ROOT / "config").sources("paper")
    brought = {path.removeprefix("results/sources/landmarks/") for path in sources if "/landmarks/" in path}
    assert {
        "gnd_roxford5k.pkl",
        "roxford5k/jpg",
        "revisitop1m.txt",
        "train_clean.csv",
        "dinov2-large",
        "ames/dinov2_ames.pt",
        "ames/rparis6k/nn_superglobal.pkl",
        "fusion-embedding-2-2b-preview",
        "leak_class_ids.json",
    } <= brought
    ours = {path for path in reach.paths(Plan(ROOT / "config"), "paper") if path.startswith("config/leaks")}
    assert ours == {"config/leaks/oxford_paris.yaml"}


def test_provenance_of_a_reranked_cell_reaches_shards_heads_and_pairs():
    records = lineage.stage_records(Plan(ROOT / "config"), "embedded", "landmarks")
    assert {
        "results/embedded/photos/places/plan.record.json",
        "results/embedded/photos/views/shards/4of4.json",
        "results/embedded/photos/views/order.record.json",
        "results/embedded/heads/decon/2.json",
        "results/embedded/rerankers/ames-small.json",
        "results/embedded/galleries/buildings-views/pairs/ames-small.json",
        "results/embedded/photos/buildings/audit.record.json",
        "results/sources/composed-photos.json",
    } <= set(records)
    assert len(records) == len(set(records))
