"""What the profiles must and must not hold (hazards H2, H3, H6, H9 and H10 of Snakemake 9 on SLURM)."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
RULES = [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]
SLURM = yaml.safe_load((ROOT / "slurm" / "config.yaml").read_text())
PARTITIONS = yaml.safe_load((ROOT / "slurm" / "partitions.yaml").read_text())["partitions"]
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


def test_the_executor_begins_to_ask_before_a_short_job_is_forgotten():
    # 40 s is the executor's own pause; the queue remembers ended jobs for 300 s unless told otherwise.
    assert SLURM["slurm-init-seconds-before-status-checks"] == 40


def test_files_of_another_node_are_waited_for_longer_than_a_shared_file_system_hides_them():
    # NFS keeps what it knows of a folder for up to 60 s (acdirmax).
    assert SLURM["latency-wait"] >= 60


def test_a_controller_is_kept_busy_and_not_flooded():
    assert SLURM["jobs"] >= 50
    assert SLURM["max-jobs-per-timespan"] == "20/1s"


def test_every_partition_with_gpus_names_their_models():
    # One that names none would be sent every model.
    models = {name: found.get("available_gpu_models") for name, found in PARTITIONS.items()}
    assert models == {"cpu": None, "h100": ["h100"], "a10g": ["a10g"]}
    assert [name for name, found in PARTITIONS.items() if found.get("max_gpu")] == ["h100", "a10g"]


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
    assert on_nodes == {"ask", "ask_shard", "ask_judge", "ask_agreement", "ask_calibration"}
    assert set(SLURM["set-resources"]) == on_nodes
    # To the script, not to its shell alone (B:), two minutes before.
    assert list(SLURM["set-resources"].values()) == [{"slurm_extra": "--signal=TERM@120"}] * 5


def all_code() -> str:
    return "\n".join(code(path) for path in RULES)


# Rules that need not say something, and why.
EXCEPTIONS = {
    # A list of targets: no job.
    "all": {"mem_mb", "runtime", "log", "benchmark"},
    "prefetch": {"log", "benchmark"},
    # Its list belongs on the terminal, and it makes no file.
    "preflight": {"log", "benchmark"},
    # One printf: no time worth keeping.
    "describe_executor": {"benchmark"},
    # Only says what is missing, and fails.
    "source.rule": {"benchmark"},
}


def rules() -> dict[str, tuple[str | None, str]]:
    """Return the rule that each rule is made from, null for none, and its own text, by name."""
    found = {}
    for part in re.split(r"(?m)^(?= *(?:use )?rule\b)", all_code())[1:]:
        used = re.match(r"use rule (\w+) as (\w+) with:", part)
        named = re.match(r" *rule (\w+):", part) or re.match(r" *rule:\s+name:\s+(\S+)", part)
        found[used[2] if used else named[1]] = (used[1] if used else None, part)
    return found


RULE_TEXTS = rules()


def said_by(name: str) -> set[str]:
    """Return which of the four a rule says, itself or by the rule that it is made from."""
    base, text = RULE_TEXTS[name]
    said = {word for word in ("log", "benchmark") if re.search(rf"^ +{word}:", text, re.MULTILINE)}
    if resources := re.search(r"^( +)resources:\n((?:\1 +\S.*\n)+)", text, re.MULTILINE):
        said |= {word for word in ("mem_mb", "runtime") if re.search(rf"\b{word}=\S", resources[2])}
    if base is None:
        return said
    # Its files are others, so must its log be; what makes the same files elsewhere shares it.
    shared = {"mem_mb", "runtime"} if re.search(r"^ +output:", text, re.MULTILINE) else said_by(base)
    return said | said_by(base) & shared


def test_all_rules_are_looked_at():
    # 57, three of systems (rules/systems.smk), six of calibrations (rules/calibrate.smk), one copies them; of
    # photographs 5 + 7 + 4 + 7 (photos, describe, heads, rank), one composes them, two estimate.
    assert len(RULE_TEXTS) == 57 + 3 + 6 + 1 + 23 + 1 + 2 and set(EXCEPTIONS) <= set(RULE_TEXTS)


@pytest.mark.parametrize("name", RULE_TEXTS)
def test_every_rule_says_memory_time_log_and_benchmark(name):
    assert {"mem_mb", "runtime", "log", "benchmark"} - said_by(name) == EXCEPTIONS.get(name, set())
