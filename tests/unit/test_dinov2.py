import io
import re

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file

import torchkit
from photokit import jpeg
from remeasure.errors import RemeasureError
from remeasure.instances import backbones, describing, local_models, sizes
from remeasure.instances.backbones.dinov2 import Dinov2, normalised
from remeasure.instances.local_models import detector as detecting
from remeasure.instances.local_models import dino_weights
from remeasure.instances.local_models.detector import Dinov2Detector
from remeasure.instances.sizes import Size

WIDTH = 64


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two layers of DINOv2 with random weights; positions for 37 x 37 patches, as the real one has them."""
    torch.manual_seed(0)
    config = transformers.Dinov2Config(
        hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, image_size=518, patch_size=14
    )
    path = tmp_path_factory.mktemp("dinov2")
    transformers.Dinov2Model(config).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def registers():
    """One layer of DINOv2 with registers, random weights, 4 x 4 patches."""
    torch.manual_seed(1)
    config = transformers.Dinov2WithRegistersConfig(
        hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=1, image_size=56, patch_size=14
    )
    model = transformers.Dinov2WithRegistersModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.2)
    return model


def told(**other):
    settings = {
        "name": "dino",
        "backend": "dinov2",
        "revision": None,
        "dim": WIDTH,
        "scales": (1.0, 1.414),
        "size_px": 56,
        "patch_px": 14,
        "max_px": 1022,
        "precision": "float32",
        "batch": 3,
    }
    return backbones.Told(**settings | other)


def picture(width, height, seed=0):
    return np.asarray(Image.open(io.BytesIO(jpeg(width, height, seed))))


# -- sizes that went wrong elsewhere -----------------------------------------------------------------------


# Landmark card, pitfall 12: interpolation by a factor gives 38 columns instead of 39 at 546 px, 42 instead of
# 43 at 602 px; 1024 x 768, the commonest size of ROxford, is 602 wide at scale 2.
@pytest.mark.parametrize(("width", "columns"), [(546, 39), (602, 43)])
def test_widths_of_546_and_602_have_all_their_columns(folder, width, columns):
    model = transformers.Dinov2Model.from_pretrained(folder)
    with torch.inference_mode():
        tokens = model(torch.zeros(1, 3, 28, width)).last_hidden_state
    assert tokens.shape == (1, 1 + 2 * columns, WIDTH)


def test_positions_are_interpolated_to_a_size_and_not_by_a_factor(folder):
    embeddings = transformers.Dinov2Model.from_pretrained(folder).embeddings
    found = embeddings.interpolate_pos_encoding(torch.zeros(1, 1 + 2 * 43, WIDTH), 28, 602)
    grid = embeddings.position_embeddings[:, 1:].view(1, 37, 37, WIDTH).permute(0, 3, 1, 2)
    wanted = torch.nn.functional.interpolate(grid, size=(2, 43), mode="bicubic", align_corners=False)
    assert torch.equal(found[0, 1:], wanted[0].permute(1, 2, 0).reshape(-1, WIDTH))


def test_the_commonest_photograph_is_described_at_its_three_scales(folder):
    encoder = Dinov2(told(scales=(1.0, 1.414, 2.0), size_px=224), folder, 1)
    prepared = encoder.prepare(picture(1024, 768))
    assert [size for size, _ in prepared] == [(294, 224), (434, 322), (602, 448)]
    assert prepared[2][1].shape == (448, 602, 3)
    found = encoder.finish([encoder.run(size, [pixels])[0] for size, pixels in prepared])["cls"]
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 1, 1], abs=1e-6)


# -- global vectors ----------------------------------------------------------------------------------------


def test_every_scale_is_made_of_the_photograph_itself(folder):
    """Pillow's bicubic filter, from the original: one scale made of another would be smoother."""
    from PIL import Image

    pixels = picture(1024, 768)
    for size, scaled in Dinov2(told(max_px=1022, size_px=224), folder, 1).prepare(pixels):
        wanted = Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)
        assert np.array_equal(scaled, np.asarray(wanted))


def test_a_vector_is_the_class_token_behind_the_last_norm(folder):
    encoder, pixels = Dinov2(told(), folder, 1), picture(70, 56)
    found = describing.vectors_of(encoder, [pixels])[0, 0]
    # 70 x 56 at scale 1 stays as it is. ImageNet's mean and deviation, as the model was trained.
    scaled = (pixels.astype(np.float64) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    model = transformers.Dinov2Model.from_pretrained(folder).eval()
    with torch.inference_mode():
        image = torch.from_numpy(scaled.transpose(2, 0, 1)[None]).float()
        hidden = model.embeddings(image)
        for layer in model.encoder.layer:
            out = layer(hidden)
            hidden = out[0] if isinstance(out, tuple) else out
        token = model.layernorm(hidden)[0, 0].double()
    assert found == pytest.approx((token / token.norm()).numpy(), abs=1e-6)


def test_batching_changes_nothing_but_the_last_bits(folder):
    pictures = [picture(70, 56, 1), picture(56, 70, 2), picture(70, 56, 3), picture(40, 40, 4)]
    together = describing.vectors_of(Dinov2(told(), folder, 1), pictures)
    alone = describing.vectors_of(Dinov2(told(batch=1), folder, 1), pictures)
    assert np.abs(together - alone).max() < 1e-6


def test_16_bits_are_stored_and_a_cpu_computes_with_32(folder):
    encoder, exact = Dinov2(told(precision="float16"), folder, 1), Dinov2(told(), folder, 1)
    found = describing.vectors_of(encoder, [picture(70, 56)])
    assert found.dtype == np.float16
    wanted = describing.vectors_of(exact, [picture(70, 56)]).astype(np.float16)
    assert np.array_equal(found, wanted)


def test_lines_of_pixels_are_described(folder):
    encoder = Dinov2(told(max_px=112), folder, 1)
    lines = [np.full((1, 40, 3), 9, np.uint8), np.full((40, 1, 3), 9, np.uint8)]
    assert np.isfinite(describing.vectors_of(encoder, lines)).all()


def test_bytes_become_numbers_as_imagenet_has_them():
    found = normalised(torch, [np.array([[[255, 0, 124]]], np.uint8)], "cpu", torch.float32)
    # (1 - 0.485) / 0.229, (0 - 0.456) / 0.224, (124 / 255 - 0.406) / 0.225
    assert found.flatten().tolist() == pytest.approx([2.248908, -2.035714, 0.356776], abs=1e-5)


def test_a_model_that_lacks_tensors_is_refused_and_not_filled_at_random(folder, tmp_path):
    from safetensors.torch import load_file

    tensors = load_file(folder / "model.safetensors")
    del tensors["layernorm.weight"]
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        RemeasureError, match="lacks 1 tensors of a Dinov2Model, the first is layernorm.weight"
    ):
        Dinov2(told(), tmp_path, 1)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "has no config.json"),
        ({"config.json": b"{}"}, r"has no weights \(.safetensors\)"),
        ({"config.json": b"{}", "pytorch_model.bin": b"x"}, r"has no weights \(.safetensors\)"),
        ({"config.json": b"{", "model.safetensors": b"x"}, "not a usable Dinov2Model"),
    ],
)
def test_a_folder_that_is_no_model_is_said_so(tmp_path, files, says):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(RemeasureError, match=says):
        Dinov2(told(), tmp_path, 1)


def test_settings_of_another_model_are_refused(folder):
    with pytest.raises(RemeasureError, match="dim 1024 and patch_px 14, .* has 64 and 14"):
        Dinov2(told(dim=1024), folder, 1)


# -- torch.hub's names -------------------------------------------------------------------------------------


def hub_tensors(model) -> dict[str, np.ndarray]:
    """Return a model's tensors under the names that torch.hub's file has (dinov2_vitb14_reg4)."""
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    plain = {
        "cls_token": "embeddings.cls_token",
        "pos_embed": "embeddings.position_embeddings",
        "register_tokens": "embeddings.register_tokens",
        "mask_token": "embeddings.mask_token",
        "patch_embed.proj.weight": "embeddings.patch_embeddings.projection.weight",
        "patch_embed.proj.bias": "embeddings.patch_embeddings.projection.bias",
        "norm.weight": "layernorm.weight",
        "norm.bias": "layernorm.bias",
    }
    found = {hub: state[name] for hub, name in plain.items()}
    for n in range(model.config.num_hidden_layers):
        here, there = f"blocks.{n}.", f"encoder.layer.{n}."
        for end in ("weight", "bias"):
            parts = [state[f"{there}attention.{part}_proj.{end}"] for part in "qkv"]
            found[f"{here}attn.qkv.{end}"] = np.concatenate(parts)
            found[f"{here}attn.proj.{end}"] = state[f"{there}attention.o_proj.{end}"]
            for name in ("norm1", "norm2", "mlp.fc1", "mlp.fc2"):
                found[f"{here}{name}.{end}"] = state[f"{there}{name}.{end}"]
        for i in (1, 2):
            found[f"{here}ls{i}.gamma"] = state[f"{there}layer_scale{i}.lambda1"]
    return found


@pytest.mark.parametrize("is_old", [False, True])
def test_the_file_of_torch_hub_is_the_same_model(registers, tmp_path, is_old):
    path = torchkit.write(tmp_path / "w.pth", hub_tensors(registers), is_old=is_old)
    loaded = dino_weights.load(path, "cpu")
    image = torch.randn(1, 3, 42, 70)
    with torch.inference_mode():
        found, wanted = (model(image).last_hidden_state for model in (loaded, registers))
    assert loaded.config.num_register_tokens == 4
    assert torch.equal(found, wanted)


def test_a_file_without_registers_or_of_another_model_is_refused(registers, tmp_path):
    tensors = hub_tensors(registers)
    for lacking, says in (("register_tokens", "register_tokens' is missing"), ("norm.bias", "found None")):
        left = {name: value for name, value in tensors.items() if name != lacking}
        with pytest.raises(RemeasureError, match=says):
            dino_weights.load(torchkit.write(tmp_path / "w.pth", left), "cpu")
    more = tensors | {"head.weight": np.zeros((2, 2), np.float32)}
    with pytest.raises(RemeasureError, match="head.weight: found .2, 2., expected None"):
        dino_weights.load(torchkit.write(tmp_path / "w.pth", more), "cpu")


# -- the detector ------------------------------------------------------------------------------------------


@pytest.fixture
def local_files(registers, tmp_path):
    """The folder of a model, and a detector whose file has the form of the published one."""
    registers.save_pretrained(tmp_path / "model")
    rng = np.random.default_rng(0)
    tensors = {
        "conv1.weight": rng.normal(size=(WIDTH, WIDTH, 1, 1)),
        "conv1.bias": rng.normal(size=WIDTH),
        "bn.weight": rng.uniform(0.5, 2, WIDTH),
        "bn.bias": rng.normal(size=WIDTH),
        "bn.running_mean": rng.normal(size=WIDTH),
        "bn.running_var": rng.uniform(0.5, 2, WIDTH),
        "conv2.weight": rng.normal(size=(1, WIDTH, 1, 1)),
        "conv2.bias": rng.normal(size=1),
    }
    tensors = {name: value.astype(np.float32) for name, value in tensors.items()}
    counter = {"bn.num_batches_tracked": torch.tensor(3)}
    kept = {name: torch.from_numpy(value) for name, value in tensors.items()} | counter
    torch.save({"state": kept, "epoch": 5}, tmp_path / "detector.pt")
    save_file(kept, tmp_path / "detector.safetensors")
    return tmp_path, tensors


def local_told(**other):
    settings = {
        "name": "locals",
        "backend": "dinov2-detector",
        "dim": WIDTH,
        "n": 12,
        "size_px": None,
        "precision": "float32",
        "batch": 2,
    }
    return local_models.Told(**settings | other)


@pytest.mark.parametrize("name", ["detector.pt", "detector.safetensors"])
def test_descriptors_are_projected_patches_by_their_attention(registers, local_files, name):
    path, weights = local_files
    encoder, pixels = Dinov2Detector(local_told(), path / "model", path / name, 1), picture(75, 55)
    ((size, scaled),) = encoder.prepare(pixels)
    # Landmark card, section 3.3: each side at its nearest patch: 75 -> 5.36 -> 70, 55 -> 3.93 -> 56.
    assert size == (70, 56)
    found = encoder.finish(encoder.run(size, [scaled]))
    with torch.inference_mode():
        patches = (
            registers(normalised(torch, [scaled], "cpu", torch.float32)).last_hidden_state[0, 5:].numpy()
        )
    projected = patches @ weights["conv1.weight"][:, :, 0, 0].T + weights["conv1.bias"]
    spread = np.sqrt(weights["bn.running_var"] + 1e-5)
    projected = (projected - weights["bn.running_mean"]) / spread * weights["bn.weight"] + weights["bn.bias"]
    attention = np.maximum(projected, 0) @ weights["conv2.weight"][0, :, 0, 0] + weights["conv2.bias"][0]
    # Softplus keeps the order. 5 x 4 = 20 patches, 12 are kept.
    order = np.argsort(-attention)[:12]
    wanted = projected[order] / np.linalg.norm(projected[order], axis=1, keepdims=True)
    assert found["n_valid"] == 12
    assert found["descriptor"].astype(np.float32) == pytest.approx(wanted, abs=1e-3)


def test_attention_is_never_negative(local_files):
    path, _ = local_files
    encoder = Dinov2Detector(local_told(), path / "model", path / "detector.pt", 1)
    ((size, scaled),) = encoder.prepare(picture(70, 56))
    ((_, attention),) = encoder.run(size, [scaled])
    assert (attention > 0).all() and (np.diff(attention) <= 0).all()


def test_fewer_patches_than_rows_leave_zeros(local_files):
    path, _ = local_files
    encoder = Dinov2Detector(local_told(), path / "model", path / "detector.pt", 1)
    ((size, scaled),) = encoder.prepare(np.full((1, 40, 3), 7, np.uint8))
    # 40 x 1 is 42 x 14: three patches.
    assert size == (42, 14)
    found = encoder.finish(encoder.run(size, [scaled]))
    assert found["n_valid"] == 3
    assert found["descriptor"].any(axis=1).tolist() == [True] * 3 + [False] * 9


def test_a_detector_of_another_size_is_refused(local_files, tmp_path):
    path, weights = local_files
    with pytest.raises(RemeasureError, match="dim is 768, .* has 64"):
        Dinov2Detector(local_told(dim=768), path / "model", path / "detector.pt", 1)
    torch.save({"state": {"conv1.weight": torch.zeros(3, 3, 1, 1)}}, tmp_path / "other.pt")
    with pytest.raises(RemeasureError, match="tensors do not fit, the first is bn.bias"):
        Dinov2Detector(local_told(), path / "model", tmp_path / "other.pt", 1)


def test_the_area_filter_is_used_where_a_side_shrinks():
    import cv2

    pixels = picture(75, 55)
    assert np.array_equal(
        local_models.resized(pixels, Size(70, 56)), cv2.resize(pixels, (70, 56), interpolation=cv2.INTER_AREA)
    )
    assert np.array_equal(
        local_models.resized(pixels, Size(84, 56)),
        cv2.resize(pixels, (84, 56), interpolation=cv2.INTER_LINEAR),
    )
    assert sizes.n_tokens(Size(70, 56)) == 21


def test_scaling_for_the_global_branch_smooths_first():
    # A pattern of single lines becomes even grey when it shrinks to a quarter: OpenCV's filter would keep it.
    from remeasure.instances.backbones.scaling import resized

    lines = np.zeros((64, 64, 3), np.uint8)
    lines[:, ::2] = 255
    found = resized(lines, Size(16, 16))[4:12, 4:12]
    assert np.abs(found.astype(int) - 127).max() <= 2


def test_weights_and_settings_and_torch_are_named_where_they_lack(monkeypatch, folder):
    import builtins

    real = builtins.__import__

    def without(name, *rest, **more):
        if re.match(r"torch(\.|$)", name):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RemeasureError, match="^torch is missing: run make landmarks"):
        Dinov2(told(), folder, 1)


def test_a_detector_has_the_layers_of_the_published_one():
    names = detecting.build_detector(torch, 4).state_dict()
    assert sorted(names) == sorted(
        ["conv1.weight", "conv1.bias", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"]
        + ["bn.num_batches_tracked", "conv2.weight", "conv2.bias"]
    )
