import io
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

import tiny_vlm
from photokit import jpeg
from remeasure.errors import RemeasureError
from remeasure.instances import backbones, describing
from remeasure.instances.backbones import fusion
from remeasure.instances.backbones import released as program
from remeasure.instances.backbones.fusion import FusionEmbedding, last_tokens, read_instructions

CONSTANTS = 'QUERY_INSTRUCTION = "Find it."\nDOCUMENT_INSTRUCTION: str = "Describe it."\n'
# A peer that shares no code with ours: one picture at a time, words and places put together by hand.
PEER = """
import numpy as np
import torch
import transformers


class Embedder:
    def __init__(self, folder):
        load = {"local_files_only": True}
        self.words = transformers.AutoTokenizer.from_pretrained(folder, **load)
        self.images = transformers.AutoImageProcessor.from_pretrained(folder, **load)
        self.net = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32, **load).eval()

    @classmethod
    def from_pretrained(cls, folder):
        return cls(folder)

    @torch.no_grad()
    def embed_image(self, image):
        seen = self.images(images=image, return_tensors="pt")
        n = int(seen["image_grid_thw"].prod()) // 4
        text = "system:Describe it.<end>user:<vision>" + "<image>" * n + "</vision><end>assistant:"
        ids = torch.tensor([self.words.convert_tokens_to_ids(self.words.tokenize(text))])
        kinds = (ids == self.net.config.image_token_id).int()
        out = self.net(input_ids=ids, attention_mask=torch.ones_like(ids), mm_token_type_ids=kinds, **seen)
        vector = out.last_hidden_state[0, -1]
        return (vector / vector.norm() * SCALE).unsqueeze(0)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny model of the same kind as the real one, with random weights."""
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("vlm")
    tiny_vlm.build(path)
    return path


def released(root, constants=CONSTANTS, peer=PEER, scale=1.0):
    package = root / "released_embedding"
    package.mkdir()
    (package / "constants.py").write_text(constants)
    (package / "__init__.py").write_text(f"SCALE = {scale}\n{peer}")
    return package


def told(**other):
    settings = {
        "name": "fusion",
        "backend": "fusion-embedding",
        "revision": "1",
        "dim": 128,
        "scales": (1.0,),
        "size_px": 224,
        "patch_px": 14,
        "max_px": 1022,
        "precision": "bfloat16",
        "batch": 2,
    }
    return backbones.Told(**settings | other)


def picture(width, height, seed=0):
    return np.asarray(Image.open(io.BytesIO(jpeg(width, height, seed))))


PICTURES = [picture(90, 60, 1), picture(60, 90, 2), picture(90, 60, 3)]


# -- what is read from the package -------------------------------------------------------------------------


def test_instructions_are_read_and_the_package_is_not_run(tmp_path):
    package = released(tmp_path, CONSTANTS + "raise SystemExit('run')\n")
    assert read_instructions(package) == {"query": "Find it.", "document": "Describe it."}


@pytest.mark.parametrize(
    "constants",
    [
        "",
        'QUERY_INSTRUCTION = "a"\n',
        CONSTANTS + 'IMAGE_INSTRUCTION = "other"\n',
        "INSTRUCTIONS = ['a', 'b']\n",
    ],
)
def test_instructions_that_are_not_plain_are_an_error(tmp_path, constants):
    with pytest.raises(RemeasureError, match="expected one constant for queries"):
        read_instructions(released(tmp_path, constants))


def test_a_chat_template_of_the_package_comes_before_the_models(tmp_path, folder):
    package = released(tmp_path)
    encoder = FusionEmbedding(told(), folder, package, 1, "query")
    assert encoder._prompts["query"] == "system:Find it.<end>user:<vision><image></vision><end>assistant:"
    (package / "chat.jinja").write_text("{{ messages[0].content[0].text }}|<image>|")
    assert FusionEmbedding(told(), folder, package, 1, "query")._prompts["query"] == "Find it.|<image>|"
    (package / "chat.jinja").write_text("no photograph")
    with pytest.raises(RemeasureError, match="shows the photograph 0 times"):
        FusionEmbedding(told(), folder, package, 1, "query")
    (package / "other.jinja").write_text("<image>")
    with pytest.raises(RemeasureError, match="has 2 chat templates"):
        FusionEmbedding(told(), folder, package, 1, "query")


# -- vectors -----------------------------------------------------------------------------------------------


def test_the_last_token_is_taken_whichever_side_is_padded():
    hidden = torch.arange(12.0).view(2, 3, 2)
    mask = torch.tensor([[1, 1, 0], [0, 1, 1]])
    assert last_tokens(torch, hidden, mask).tolist() == [[2, 3], [10, 11]]


def test_a_query_and_a_document_differ_by_their_instruction(tmp_path, folder):
    package = released(tmp_path)
    found = [
        describing.vectors_of(FusionEmbedding(told(), folder, package, 1, which), PICTURES)
        for which in ("document", "query")
    ]
    assert found[0].shape == (3, 1, 128) and found[0].dtype == np.float32
    assert np.linalg.norm(found[0], axis=2) == pytest.approx(1, abs=1e-6)
    assert np.abs(found[0] - found[1]).max() > 1e-4


def test_batches_change_nothing_but_the_last_bits(tmp_path, folder):
    package = released(tmp_path)
    one, two = (
        describing.vectors_of(FusionEmbedding(told(batch=n), folder, package, 1, "document"), PICTURES)
        for n in (1, 2)
    )
    assert np.abs(one - two).max() < 1e-6


def test_settings_that_do_not_fit_are_refused(tmp_path, folder):
    package = released(tmp_path)
    with pytest.raises(RemeasureError, match="has one: .1.0."):
        FusionEmbedding(told(scales=(1.0, 2.0)), folder, package, 1, "document")
    with pytest.raises(RemeasureError, match="dim is 2048, .* has 128"):
        describing.vectors_of(FusionEmbedding(told(dim=2048), folder, package, 1, "document"), PICTURES)


# -- the released package ----------------------------------------------------------------------------------


@pytest.fixture
def here(monkeypatch):
    """Run the released package in this process: another one takes seconds to load torch."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def run(words, **_):
        sys.modules.pop("released_embedding", None)
        program.main(*words[2:])
        return subprocess.CompletedProcess(words, 0, b"", b"")

    monkeypatch.setattr(fusion.subprocess, "run", run)
    yield
    sys.modules.pop("released_embedding", None)


@pytest.mark.slow
def test_it_agrees_with_the_released_package_in_a_process_of_its_own(tmp_path, folder):
    encoder = FusionEmbedding(told(), folder, released(tmp_path), 1, "query")
    assert encoder.check_released(PICTURES) <= 1e-6


def test_it_agrees_with_the_released_package(tmp_path, folder, here):
    encoder = FusionEmbedding(told(), folder, released(tmp_path), 1, "query")
    assert isinstance(encoder, backbones.Gated)
    assert encoder.check_released(PICTURES) <= 1e-6


def test_modules_may_lie_in_the_folder_of_the_model(tmp_path, folder, here):
    whole = shutil.copytree(folder, tmp_path / "model")
    (whole / "released_embedding.py").write_text(f"SCALE = 2.0\n{CONSTANTS}{PEER}")
    encoder = backbones.open_backbone(told(), {"model": whole}, 1)
    assert encoder.check_released(PICTURES) <= 1e-6


def test_a_package_that_says_something_else_stops_it(tmp_path, folder, here):
    peer = PEER.replace("Describe it.", "Describe it!")
    encoder = FusionEmbedding(told(), folder, released(tmp_path, peer=peer), 1, "document")
    with pytest.raises(
        RemeasureError, match="differs from embed_image of .* on 3 photographs, at most 1e-06"
    ):
        encoder.check_released(PICTURES)


@pytest.mark.parametrize(
    ("peer", "says"),
    [
        ("raise RuntimeError('no audio library')", "RuntimeError: no audio library"),
        ("class Other: pass", "classes with from_pretrained and embed_image: none; expected one"),
    ],
)
def test_a_package_that_cannot_be_run_is_said_so(tmp_path, folder, peer, says):
    encoder = FusionEmbedding(told(), folder, released(tmp_path, peer=peer), 1, "document")
    with pytest.raises(RemeasureError) as caught:
        encoder.check_released(PICTURES)
    assert says in str(caught.value) and "install what it needs" in str(caught.value)


def test_limits_are_those_of_the_card():
    assert (fusion.LIMIT, backbones.N_COMPARED) == (1e-6, 3)
    assert transformers.__version__ == "5.24.0"
