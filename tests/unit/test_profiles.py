"""What the profiles must and must not hold (hazards H2, H3, H6, H9 and H10 of Snakemake 9 on SLURM)."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
RULES = [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]
SLURM = yaml.safe_load((ROOT / "slurm" / "config.yaml").read_text())
# It wins over --profile, whole key by whole key: what stands in it cannot be changed by a site.
DISPLAY_AND_SAFETY = {
    "keep-going",
    "max-checksum-file-size",
    "rerun-incomplete",
    "scheduler",
    "show-failed-logs",
}


def code(path: Path) -> str:
    """Return a rule file without comments."""
    return re.sub(r"(?m)#.*$", "", path.read_text())


def test_the_default_profile_holds_display_and_safety_options_only():
    folder = ROOT / "profiles" / "default"
    assert [path.name for path in folder.iterdir()] == ["config.yaml"]
    assert set(yaml.safe_load((folder / "config.yaml").read_text())) == DISPLAY_AND_SAFETY


def test_no_key_of_the_cluster_profile_is_silently_beaten_by_the_default_profile():
    assert not DISPLAY_AND_SAFETY & set(SLURM)


def test_the_cluster_profile_sets_one_configuration_key():
    assert SLURM["config"] == {"run": "paper"}


def test_the_cluster_profile_knows_neither_arrays_nor_submission_without_waiting():
    assert not {"slurm-array-jobs", "immediate-submit", "cluster", "cluster-generic-submit-cmd"} & set(SLURM)


def test_status_is_asked_in_a_way_that_outlives_an_outage_of_half_an_hour():
    # Each attempt of our `sacct` waits nearly a minute.
    assert SLURM["slurm-status-command"] == "sacct"
    assert SLURM["slurm-status-attempts"] >= 30


def test_attempts_are_the_profiles_to_grant():
    assert SLURM["retries"] == 2
    for path in RULES:
        assert not re.search(r"^\s+retries: *[^0 \n]", code(path), re.MULTILINE), path


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_no_rule_starts_a_nested_snakemake_or_a_shell_script_of_its_own(path):
    assert not re.search(r"^\s+(run|script|notebook|wrapper):", code(path), re.MULTILINE)


def test_every_rule_that_the_cluster_profile_names_exists():
    names = {name for path in RULES for name in re.findall(r"^(?:use )?rule (\w+)", code(path), re.MULTILINE)}
    names |= {
        name for path in RULES for name in re.findall(r"^use rule \w+ as (\w+)", code(path), re.MULTILINE)
    }
    assert set(SLURM["set-resources"]) <= names


def test_every_step_that_asks_a_model_on_a_node_is_told_before_its_time_limit():
    asking = {name for name in re.findall(r"^(?:use rule \w+ as|rule) (ask\w*)", all_code(), re.MULTILINE)}
    on_nodes = {name for name in asking if not name.endswith("_on_login")}
    assert on_nodes == {"ask", "ask_shard", "ask_judge", "ask_agreement"}
    assert set(SLURM["set-resources"]) == on_nodes


def all_code() -> str:
    return "\n".join(code(path) for path in RULES)
