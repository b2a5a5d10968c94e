"""A converted LLaVA behind a real vLLM: it loads, and the prompt has the tokens that it should have."""

import base64
import json
import os
import urllib.request

import cv2
import numpy as np
import pytest

import adapterkit
import merge_adapter
import real_vllm
from remeasure import model_server

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(400)]
# Heads of 64: vLLM's attention for CPUs takes no smaller ones.
TEXT = {"hidden_size": 128, "intermediate_size": 128, "num_attention_heads": 2, "num_key_value_heads": 1}
SEEN = {"hidden_size": 64, "num_attention_heads": 1, "intermediate_size": 64}


def test_a_merged_llava_is_served_and_sees_the_image_before_the_question(request, tmp_path, monkeypatch):
    python = request.config.getoption("--vllm-python")
    if python is None:
        pytest.skip("no vLLM: give --vllm-python PATH")
    more = {"mm_hidden_size": 64, "max_position_embeddings": 2048}
    monkeypatch.setattr(adapterkit, "LLAVA", adapterkit.LLAVA | TEXT | more)
    monkeypatch.setattr(adapterkit, "CLIP", adapterkit.CLIP | SEEN)
    adapterkit.llava_base(tmp_path / "base", "BF16")
    adapterkit.clip(tmp_path / "clip")
    adapterkit.llava_adapter(tmp_path / "adapter")
    words = [
        "--settings",
        '{"family": "llava15"}',
        "--out",
        tmp_path / "out",
        "--record",
        tmp_path / "out.json",
    ]
    words += [word for name in ("base", "adapter") for word in (f"--{name}", tmp_path / name)]
    assert merge_adapter.main([*map(str, words), "--vision", str(tmp_path / "clip")]) == 0
    bin_folder, _ = real_vllm.install(tmp_path / "vllm", python)
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    options = real_vllm.OPTIONS | {"limit-mm-per-prompt": '{"image": 1}'}
    command = model_server.command("serve_vllm.py", "slug", {"model": str(tmp_path / "out")}, options)
    data = cv2.imencode(".png", np.full((56, 168, 3), 200, np.uint8))[1].tobytes()
    image = {"url": f"data:image/png;base64,{base64.b64encode(data).decode()}"}
    content = [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": image}]
    body = {"model": "slug", "messages": [{"role": "user", "content": content}], "max_tokens": 4}
    with model_server.running(command, "slug", tmp_path / "log", 300) as server:
        asked = urllib.request.Request(
            f"{server.base_url}/chat/completions",
            json.dumps(body | {"return_token_ids": True, "temperature": 0}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=100) as reply:
            found = json.load(reply)
    # One token a character, by its code less 29; 16 of the image; the beginning once.
    plain = [
        [ord(letter) - 29 if letter != "\n" else 99 for letter in text]
        for text in ("USER: ", "\nLook. ASSISTANT:")
    ]
    assert found["prompt_token_ids"] == [1, *plain[0], *[100] * 16, *plain[1]]
    assert found["usage"]["completion_tokens"] == 4
