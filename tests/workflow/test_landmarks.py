"""The study that ranks photographs: a shard deleted, steps killed, a benchmark that is wrong."""

import json
import re
import shutil

import pytest

from conftest import jobs
from killkit import dying

TARGETS = ("results/ci/tables/landmarks.csv", "results/ci/tables/landmarks.html")


def made(checkout) -> dict[str, bytes]:
    """Return the bytes of all that the study made and of its tables."""
    found = {}
    for part in ("photos", "heads", "galleries", "read_outs", "rerankers", "landmarks"):
        found |= checkout.bytes_of(f"results/ci/{part}/**/*")
    found |= checkout.bytes_of("results/ci/tables/landmarks*")
    return found


def test_a_second_call_has_nothing_to_do(finished):
    assert finished.planned(*TARGETS) == {}


def test_without_one_shard_of_vectors_it_and_what_follows_are_made_again(checkout):
    before = made(checkout)
    checkout.path("results/ci/photos/objects/cls/semantic/1of1.h5").unlink()
    # One gallery's read-outs, the choice that looks at both galleries', and the two rankings by it.
    expected = {"extract_cls": 1, "read_out": 1, "choose_read_out": 1, "place_photos": 2, "grade": 2}
    assert jobs(checkout.run(*TARGETS)) == expected | {"make_table": 1, "make_page": 1}
    assert made(checkout) == before
    assert checkout.planned(*TARGETS) == {}


def test_vectors_of_distractors_concern_the_galleries_that_have_them(checkout):
    checkout.path("results/ci/photos/views/cls/efficientnet/1of1.h5").unlink()
    planned = checkout.planned(*TARGETS)
    # One head ranks two galleries with distractors, in one stage and in two.
    assert (planned["extract_cls"], planned["project"], planned["rank_first"]) == (1, 1, 2)
    assert (planned["place_photos"], planned["grade"]) == (4, 4)
    assert not {"stream_photos", "audit_photos", "train_head", "read_out"} & set(planned)


@pytest.mark.timeout(300)
def test_a_training_and_a_scoring_that_are_killed_go_on_and_end_in_the_same_bytes(checkout, tmp_path):
    before = made(checkout)
    pairs = "results/ci/galleries/buildings-views/pairs"
    checkout.path(f"{pairs}/ames-small.parquet").unlink()
    shutil.rmtree(checkout.path(f"{pairs}/ames-small.blocks"))  # which stay, for further heads
    checkout.path("results/ci/heads/decon/0.safetensors").unlink()
    # An epoch leaves two files; a block of pairs one.
    deaths = (("train_head.py", "0.checkpoints", 4), ("score_pairs.py", "ames-small.blocks", 1))
    env = dying(tmp_path / "dying", *deaths)
    for _ in range(3):
        done = checkout.call(*TARGETS, "--config", "run=ci", env=env)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    died = {path.name: path.read_text() for path in (tmp_path / "dying").glob("*.died")}
    assert died.keys() == {"train_head.py.died", "score_pairs.py.died"}
    assert (
        "published: goes on after epoch 1" in checkout.path("results/ci/heads/decon/logs/0.log").read_text()
    )
    n_pairs, n_known, n_scored = map(
        int,
        re.search(
            r"(\d+) pairs, (\d+) of them known.*?(\d+) scored now",
            checkout.path(f"{pairs}/logs/ames-small.log").read_text(),
            re.DOTALL,
        ).groups(),
    )
    assert n_scored < n_pairs - n_known, "pairs of the block that was finished are not scored again"
    assert made(checkout) == before


def test_queries_that_were_not_cropped_fail_the_audit_with_one_line_and_nothing_is_ranked(checkout):
    vectors = checkout.path("results/ci/photos/objects/cls/efficientnet")
    shutil.copyfile(vectors / "whole.h5", vectors / "queries.h5")
    before = made(checkout)
    done = checkout.call(*TARGETS, "--config", "run=ci")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    log = "results/ci/photos/objects/logs/audit_photos.log"
    last = checkout.path(log).read_text().splitlines()[-1]
    assert last.startswith("error: objects: the audit failed: ")
    assert last.endswith(
        "nothing is ranked until that is put right (results/ci/photos/objects/audit.failed.json)"
    )
    end = done.stderr[done.stderr.index("Failed jobs (1):") :].splitlines()
    assert end[1:3] == ["  audit_photos objects: its command failed", f"    {log}"]
    # Stored vectors are none of a crop: those made now are further from them than those of whole photographs.
    failed = json.loads(checkout.path("results/ci/photos/objects/audit.failed.json").read_text())
    assert [one["name"] for one in failed["checks"] if not one["ok"]] == [
        "crop_cosine_least",
        "whole_closer_than_crop",
    ]
    after = made(checkout)
    assert not {name for name in after if "/landmarks/" in name and after[name] != before[name]}
