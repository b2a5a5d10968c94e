"""What may not stand in our sources and profiles on a cluster, and how a need is put into words."""

from types import SimpleNamespace

from remeasure.cluster import hazards
from remeasure.fingerprint import SCRIPTS

ROOT = SCRIPTS.parent


def test_our_default_profile_decides_nothing():
    [path] = hazards.default_profiles(ROOT)  # an empty folder would fail every call
    assert path == ROOT / "profiles" / "default" / "config.yaml" and hazards.taken_over(path) == []


def test_what_takes_over_is_found_in_both_spellings(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("default_resources: {mem_mb: 1}\nrerun-incomplete: true\ncores: 4\n")
    assert hazards.taken_over(path) == ["cores", "default-resources"]
    path.write_text("# nothing\n")
    assert hazards.taken_over(path) == []
    path.write_text("")
    assert hazards.taken_over(path) == []


def test_a_need_in_words():
    def said(gpu, model, threads, mem_mb, runtime_min):
        return hazards.described(
            SimpleNamespace(gpu=gpu, gpu_model=model, threads=threads, mem_mb=mem_mb, runtime_min=runtime_min)
        )

    assert said(2, "h100", 8, 64000, 120) == "2 GPUs h100, 8 threads, 64,000 MB, 120 min"
    assert said(1, None, None, None, None) == "1 GPU, 1 thread"
