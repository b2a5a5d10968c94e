import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

import embed
import search
from remeasure import obstacles
from remeasure.errors import RemeasureError
from remeasure.plan import Plan
from remeasure.preamble import check_run

ROOT = Path(__file__).resolve().parents[2]
PLAN = Plan(ROOT / "config")


def job(rule: str, output: str = "x", **wildcards) -> SimpleNamespace:
    return SimpleNamespace(
        rule=SimpleNamespace(name=rule), output=[output], wildcards=SimpleNamespace(**wildcards)
    )


def test_everything_that_is_missing_is_named_once_with_where_it_comes_from():
    zim = "results/sources/wikipedia_en_all_maxi_2025-08.zim"
    found = obstacles.find(
        [
            job("embed_part", run="paper", encoder="tile-qwen"),
            job("embed_part", run="paper", encoder="tile-qwen"),
            job("by_hand_wikipedia", output=zim),
            job("embed", run="embedded", encoder="ocr-bge"),
        ],
        PLAN,
    )
    assert found == [
        f"{zim} is missing and cannot be fetched: the Wikipedia archive of the study, about 100 GB. It comes "
        "from https://download.kiwix.org/zim/wikipedia/, or a mirror that keeps old dumps (licence: CC BY-SA "
        "4.0); put it there",
        "encoders.tile-qwen.backend: qwen3-vl is not written yet in this version (there is: onnx); its steps "
        "can be planned, not run",
    ]


def test_a_table_that_is_not_pinned_is_named_before_anything_starts():
    path = "results/sources/mrarebench/diagnosis/diagnosis_opened.tsv"
    module = "results/sources/vlmevalkit-mrarebench.py"
    (problem,) = obstacles.find([job("download_x", output=path), job("download_y", output=module)], PLAN)
    assert problem.startswith(f"{path} is not pinned yet, so nothing is fetched: choose a commit on ")


def test_a_search_needs_the_encoder_of_its_arm():
    places = {"study": "pixelrag", "bench": "nq"}
    assert "tile-qwen-lora" in obstacles.find([job("search", run="paper", arm="lora", **places)], PLAN)[0]
    assert obstacles.find([job("search", run="ci", arm="lora", **places)], PLAN) == []


def test_only_the_process_that_plans_stops():
    jobs = SimpleNamespace(needrun_jobs=lambda: [job("embed", run="paper", encoder="tile-qwen")])
    obstacles.stop(SimpleNamespace(is_main_process=False, dag=jobs), PLAN)
    with pytest.raises(SystemExit) as ended:
        obstacles.stop(SimpleNamespace(is_main_process=True, dag=jobs), PLAN)
    assert ended.value.code == 2


def test_a_run_whose_data_is_not_there_can_be_planned():
    check_run("paper", PLAN)
    # 23 of the other studies; three embedders, three rerankers and four answerers of systems, one of them the
    # judge as well; the papers of OpenRAG Bench and the folder of FinQA; six ready-made databases, and the
    # tokenizer for one that is made; what landmarks need but two files of classes that have an address.
    assert (
        len([path for path in PLAN.sources("paper") if path in PLAN.catalogue.by_hand()])
        == 23 + 10 + 2 + 7 + 17
    )
    assert not set(PLAN.sources("embedded")) & set(PLAN.catalogue.by_hand())


def test_the_scripts_themselves_say_that_the_backend_is_missing(tmp_path, capsys):
    made = ["--out", str(tmp_path / "o"), "--record", str(tmp_path / "r")]
    told = json.dumps(PLAN.embed("paper", "tile-qwen"))
    words = ["--settings", told, "--model", "m", "--threads", "1", "--order", "o", "--part", "1of70"]
    assert embed.main([*words, *made]) == 2
    assert "encoders.tile-qwen.backend: qwen3-vl is not written yet" in capsys.readouterr().err
    told = json.dumps(PLAN.retrieval("paper", "pixelrag", "base"))
    index = ["--text-index", "i", "--text-record", "i", "--text-order", "i", "--model", "m", "--items", "i"]
    assert search.main(["--settings", told, *index, *made]) == 2
    assert "encoders.tile-qwen.backend: qwen3-vl is not written yet" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_source_by_hand_that_is_misspelt_is_told_with_a_guess(tmp_path):
    shutil.copytree(ROOT / "config", tmp_path / "config")
    for name in ("scripts", "envs", "requirements.txt"):
        (tmp_path / name).symlink_to(ROOT / name)
    path = tmp_path / "config/runs/paper.yaml"
    path.write_text(
        path.read_text().replace("adapter: results/sources/wiki-", "adapter: results/sources/wiky-")
    )
    with pytest.raises(
        RemeasureError, match="files.adapter: results/sources/wiky-.* is not there.*did you mean"
    ):
        check_run("paper", Plan(tmp_path / "config"))


@pytest.mark.parametrize(
    ("bench", "n", "corpus"),
    [
        ("nq", 1000, "wikipedia"),
        ("nqt", 1068, "wikipedia"),
        ("sqa", 1000, "wikipedia"),
        ("mms", 300, "wikipedia"),
        ("evqa", 749, "wikipedia"),
        ("livevqa", 26888, "news"),
    ],
)
def test_the_paper_s_counts_and_corpora(bench, n, corpus):
    # Cell table of the PixelRAG evaluation guide.
    assert PLAN.items("paper", "pixelrag", bench)["n_items"] == n
    assert PLAN.grade("paper", "pixelrag", bench, "base", "qwen3-5-4b")["corpus"] == corpus
