"""The head's numbers, what it is trained on, and what chooses its epoch."""

import msgspec
import numpy as np
import pytest
import torch

from headkit import SETTINGS
from remeasure.errors import RemeasureError
from remeasure.instances.heads import arcface, model, network, sampling, selection, training
from remeasure.instances.heads.checkpoint import Epoch
from remeasure.instances.heads.sampling import Photos
from remeasure.instances.heads.settings import HeadSettings

HELD_OUT = [109, 125]


def settings(**changed) -> HeadSettings:
    return msgspec.convert(SETTINGS | changed, HeadSettings)


# -- the model ---------------------------------------------------------------------------------------------


def test_the_published_head_has_3148800_parameters():
    # 1024·2048 + 2048 = 2,099,200; 2048·512 = 1,048,576; 2·512 = 1,024 (landmarks card, section 1.5).
    assert model.n_parameters(1024, 2048, 512) == 3_148_800
    built = network.build(1024, 2048, 512)
    assert sum(parameter.numel() for parameter in built.parameters()) == 3_148_800


def test_tensors_have_the_published_names_and_shapes():
    assert {name: value.shape for name, value in network.tensors(network.build(4, 6, 3)).items()} == {
        "0.weight": (6, 4),
        "0.bias": (6,),
        "2.weight": (3, 6),
        "3.weight": (3,),
        "3.bias": (3,),
        "3.running_mean": (3,),
        "3.running_var": (3,),
    }


def test_a_head_is_the_same_after_writing_and_reading(tmp_path):
    found = network.tensors(network.build(4, 6, 3))
    model.write(tmp_path / "head.safetensors", found)
    again, others = model.read(tmp_path / "head.safetensors", 4, 6, 3)
    assert others == []
    assert all(np.array_equal(again[name], value) for name, value in found.items())


def test_a_torch_file_with_a_prefix_and_a_class_matrix_is_a_head(tmp_path):
    head = network.build(4, 6, 3)
    state = {f"module.{name}": value for name, value in head.state_dict().items()}
    torch.save(state | {"arc": torch.zeros(7, 3)}, tmp_path / "full_head_standard.pt")
    found, others = model.read(tmp_path / "full_head_standard.pt", 4, 6, 3)
    assert others == ["arc"]
    assert np.array_equal(found["2.weight"], head[2].weight.detach().numpy())


def test_half_precision_weights_become_single(tmp_path):
    torch.save(network.build(4, 6, 3).half().state_dict(), tmp_path / "head.pt")
    assert model.read(tmp_path / "head.pt", 4, 6, 3)[0]["0.bias"].dtype == np.float32


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda state: state.pop("0.bias"), "tensor 0.bias is missing"),
        (lambda state: state.pop("3.running_var"), "no head: it has the tensors"),
        (lambda state: state["3.running_var"].fill_(-1), "has a negative variance"),
        (
            lambda state: state["2.weight"][0].fill_(float("nan")),
            "tensor 2.weight has 6 numbers that are infinite",
        ),
        (
            lambda state: state.update({"2.weight": torch.zeros(3, 7)}),
            r"F32 of shape \[3, 7\], expected floats",
        ),
        (lambda state: state.update({"3.bias": torch.zeros(3, dtype=torch.int64)}), "tensor 3.bias is I64"),
    ],
)
def test_weights_that_are_no_head_are_refused(tmp_path, change, said):
    state = network.build(4, 6, 3).state_dict()
    change(state)
    torch.save(state, tmp_path / "head.pt")
    with pytest.raises(RemeasureError, match=said):
        model.read(tmp_path / "head.pt", 4, 6, 3)


def test_a_pickle_that_wants_more_than_tensors_is_refused(tmp_path):
    torch.save(network.build(4, 6, 3), tmp_path / "head.pt")
    with pytest.raises(RemeasureError, match="refused as a weight file: it asks for torch.nn"):
        model.read(tmp_path / "head.pt", 4, 6, 3)


def test_a_file_of_another_ending_is_not_guessed_at(tmp_path):
    with pytest.raises(RemeasureError, match=r"head.pkl: a head ends in .safetensors or .pt"):
        model.read(tmp_path / "head.pkl", 4, 6, 3)


def test_scales_are_averaged_and_the_mean_is_of_length_1():
    # (1, 0) and (0, 1) have the mean (½, ½), of length 1: √½ each.
    found = model.mean_of_scales(np.array([[[1, 0], [0, 1]], [[0, 0], [0, 0]]], np.float16))
    assert found.dtype == np.float32
    assert found.tolist() == [pytest.approx([0.70710678, 0.70710678]), [0.0, 0.0]]


def test_short_vectors_keep_their_direction():
    # What opposite scales leave is 5e-5 long; its square, 2.5e-9, is 0 in float16.
    near = np.array([[[1, 0], [-1, 1e-4]]], np.float16)
    assert model.mean_of_scales(near)[0] == pytest.approx([0.0, 1.0], abs=1e-6)


# -- ArcFace -----------------------------------------------------------------------------------------------


def test_the_margin_turns_the_angle():
    # cos(π/2 + 0.3) = -sin 0.3; cos(π/3 + 0.3) = 0.5 · cos 0.3 - (√3/2) · sin 0.3; cos(0.3).
    found = arcface.with_margin(torch.tensor([0.0, 0.5, 1.0]), 0.3)
    assert found.tolist() == pytest.approx([-0.29552021, 0.22174027, 0.95533649], abs=2e-6)


def test_beyond_pi_less_the_margin_the_logit_goes_on_falling():
    # -1 - 0.3 · sin 0.3, and just short of the place where it begins: cos(π - 0.3) = -0.95533649.
    found = arcface.with_margin(torch.tensor([-1.0, -0.9554, -0.9553]), 0.3)
    assert found.tolist() == pytest.approx([-1.08865606, -1.04405606, -0.99999999], abs=1e-4)


def test_slopes_are_finite_where_descriptor_and_class_are_one_direction():
    cosine = torch.tensor([1.0, -1.0, 0.0], requires_grad=True)
    arcface.with_margin(cosine, 0.3).sum().backward()
    assert torch.isfinite(cosine.grad).all()


def test_only_the_right_class_has_the_margin_and_all_are_scaled():
    descriptors = torch.tensor([[3.0, 0.0], [0.0, 0.5]])
    classes = torch.tensor([[2.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    found = arcface.logits(descriptors, classes, torch.tensor([0, 0]), 0.3, 32.0)
    # 32 · cos 0.3 = 30.5707676; 32 · -sin 0.3 = -9.4566466.
    assert found.tolist() == [
        pytest.approx([30.5707676, 0.0, -32.0], abs=1e-4),
        pytest.approx([-9.4566466, 32.0, 0.0], abs=1e-4),
    ]


def test_the_loss_is_cross_entropy_with_smoothed_labels():
    # Logits 0 and 0 for two classes: -log ½ = 0.69314718, whatever the labels are smoothed by.
    same = {"margin": 1e-9, "scale": 32.0}
    classes = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    middle = torch.tensor([[0.0, 1.0]])
    found = arcface.loss(middle, classes, torch.tensor([0]), label_smoothing=0.1, **same)
    assert float(found) == pytest.approx(0.69314718, abs=1e-6)
    # Logits 32 and -32: 0.95 · 0 + 0.05 · 64 = 3.2.
    right = arcface.loss(classes[:1], classes, torch.tensor([0]), label_smoothing=0.1, **same)
    assert float(right) == pytest.approx(3.2, abs=1e-3)


def test_the_loss_and_its_slopes_are_those_of_torchs_cross_entropy():
    generator = torch.Generator().manual_seed(3)
    descriptors = torch.randn(5, 4, generator=generator).requires_grad_()
    classes = torch.randn(7, 4, generator=generator).requires_grad_()
    labels = torch.tensor([0, 6, 2, 2, 5])
    ours = arcface.loss(descriptors, classes, labels, margin=0.3, scale=32.0, label_smoothing=0.1)
    logits = arcface.logits(descriptors, classes, labels, 0.3, 32.0)
    theirs = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=0.1)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-6)
    for here, there in zip(
        *(torch.autograd.grad(x, (descriptors, classes)) for x in (ours, theirs)), strict=True
    ):
        assert here.numpy() == pytest.approx(there.numpy(), abs=1e-4)


def test_cosines_are_of_single_precision_for_half_precision_arguments():
    found = arcface.logits(torch.ones(1, 4).half(), torch.ones(2, 4).half(), torch.tensor([0]), 0.3, 32.0)
    assert found.dtype == torch.float32


# -- what is trained on ------------------------------------------------------------------------------------


def photos(landmarks, leaks=(), undecoded=()) -> Photos:
    landmark_id = np.array(landmarks, np.int64)
    status = np.zeros(len(landmarks), np.uint8)
    status[list(undecoded)] = 2
    return Photos(landmark_id, np.isin(landmark_id, list(leaks)), status)


def test_small_classes_are_dropped_after_photographs_without_a_picture():
    # Class 5 has three photographs, one of which could not be decoded; class 9 has three.
    chosen, counts = sampling.choose(photos([5, 9, 5, 9, 5, 9], undecoded=[0]), 3, decontaminated=False)
    assert chosen.row.tolist() == [1, 3, 5]
    assert chosen.landmark_ids.tolist() == [9]
    assert counts == {
        "photos_not_decoded": 1,
        "photos_that_leak": 0,
        "classes_that_leak": 0,
        "photos_of_small_classes": 2,
        "small_classes": 1,
    }


def test_leaking_classes_are_masked_only_where_it_is_asked_for():
    given = photos([4, 4, 4, 7, 7, 7, 8, 8, 8], leaks=[7])
    assert sampling.choose(given, 3, decontaminated=False)[0].n_classes == 3
    chosen, counts = sampling.choose(given, 3, decontaminated=True)
    assert chosen.landmark_ids.tolist() == [4, 8]
    assert chosen.label.tolist() == [0, 0, 0, 1, 1, 1]
    assert (counts["classes_that_leak"], counts["photos_that_leak"]) == (1, 3)


def test_leaking_photographs_are_masked_before_classes_are_counted():
    """Class 4 has three photographs, one of which leaks: two are left, and it is dropped."""
    photos_of = photos([4, 4, 4, 7, 7, 7])._replace(leak=np.array([True] + [False] * 5))
    chosen, counts = sampling.choose(photos_of, 3, decontaminated=True)
    assert chosen.row.tolist() == [3, 4, 5] and counts["photos_of_small_classes"] == 2


def test_held_out_classes_are_whole_and_no_seed_changes_them():
    landmarks = [number for number in range(100, 140) for _ in range(3)]
    chosen, _ = sampling.choose(photos(landmarks), 3, decontaminated=False)
    rest, out = sampling.hold_out(chosen, 0.05)
    assert (rest.n_classes, out.n_classes) == (38, 2)
    # Those of 100 to 139 whose SHA-256 (`printf 100 | sha256sum`) comes first in the order of bytes.
    assert out.landmark_ids.tolist() == HELD_OUT
    assert sorted([*rest.row, *out.row]) == list(range(120))
    assert out.row.tolist() == [row for row, one in enumerate(landmarks) if one in HELD_OUT]


def test_a_head_needs_two_classes_beside_those_that_are_held_out():
    chosen, _ = sampling.choose(photos([1, 1, 1, 2, 2, 2, 3, 3, 3]), 3, decontaminated=False)
    with pytest.raises(RemeasureError, match="3 classes, of which 2 are to be held out"):
        sampling.hold_out(chosen, 0.05)


def test_a_class_is_drawn_as_often_as_the_root_of_its_size_says():
    # Classes of 4, 9 and 16 photographs: 2, 3 and 4 of 9.
    label = np.repeat([0, 1, 2], [4, 9, 16])
    cumulative = sampling.cumulative_weights(label)
    assert cumulative[-1] == pytest.approx(9.0)
    assert cumulative[[3, 12]] == pytest.approx([2.0, 5.0])
    drawn = np.concatenate([label[sampling.draw(cumulative, 0, epoch)] for epoch in range(2000)])
    assert np.bincount(drawn) / len(drawn) == pytest.approx([2 / 9, 3 / 9, 4 / 9], abs=0.005)


def test_an_epoch_draws_as_many_as_there_are_and_again_the_same():
    cumulative = sampling.cumulative_weights(np.repeat([0, 1], [3, 7]))
    first, again, other = (sampling.draw(cumulative, 5, epoch) for epoch in (2, 2, 3))
    assert len(first) == 10 and first.min() >= 0 and first.max() <= 9
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parametrize(("n", "sizes"), [(8, [4, 4]), (9, [4, 5]), (10, [4, 4, 2]), (1, [1]), (3, [3])])
def test_no_batch_is_a_single_one_beside_others(n, sizes):
    assert [len(batch) for batch in sampling.batches(np.arange(n), 4)] == sizes


# -- what chooses ------------------------------------------------------------------------------------------


def test_the_first_of_equal_epochs_is_the_best():
    history = tuple(Epoch(epoch=i, rate=1, loss=1, value=v) for i, v in enumerate([0.2, 0.5, 0.5, 0.1]))
    assert training.best_of(history) == 1


def test_a_training_ends_after_epochs_that_bring_nothing():
    def over(*values, **changed):
        history = tuple(Epoch(epoch=i, rate=1, loss=1, value=v) for i, v in enumerate(values))
        return training.is_over(history, settings(**changed))

    assert not over(epochs=40, patience=2)
    assert not over(0.5, 0.4, epochs=40, patience=2)
    assert over(0.5, 0.4, 0.5, epochs=40, patience=2)
    assert not over(0.5, 0.4, 0.6, epochs=40, patience=2)
    assert over(0.1, 0.2, 0.3, epochs=3, patience=8)


def test_the_rate_is_half_a_cosine_over_all_epochs():
    # 1e-3 · (1 + cos(π · e/40)) / 2 for e = 0, 10, 20, 39.
    found = [training.rate_of(epoch, settings(learning_rate=1e-3, epochs=40)) for epoch in (0, 10, 20, 39)]
    assert found == pytest.approx([1e-3, 8.5355339e-4, 5e-4, 1.541333e-6], rel=1e-6)


def test_a_held_out_photograph_is_not_found_by_itself():
    # Along a line of angles 0, 10, 20, 90 with classes a b a b: the first sees b, a, b.
    # Query 0: its one positive is second: AP (0/1 + 1/2)/2 = 0.25. Query 1 (10°): 0 and 2 are nearer than 3:
    # third, AP (0/2 + 1/3)/2 = 1/6. Query 2 (20°): 1, then 0: 0.25. Query 3 (90°): 2, then 1: 0.25.
    angles = np.radians([0, 10, 20, 90])
    descriptors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    label = np.array([0, 1, 0, 1])
    assert selection.mean_ap(descriptors, label, np.arange(4)) == pytest.approx(
        (0.25 + 1 / 6 + 0.25 + 0.25) / 4
    )
    assert selection.mean_ap(descriptors, label, np.array([1])) == pytest.approx(1 / 6)


def test_queries_are_taken_from_the_classes_in_turn():
    label = np.array([0, 0, 0, 1, 2, 2])
    assert selection.take_turns(label, 4).tolist() == [0, 1, 3, 4]
    assert selection.take_turns(label, 99).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_row_of_zeros_stays_one():
    head = network.build(4, 6, 3).eval()
    found = selection.projection(head, "cpu")(np.array([[0, 0, 0, 0], [1, 0, 0, 0]], np.float32))
    assert found[0].tolist() == [0.0, 0.0, 0.0]
    assert np.linalg.norm(found[1]) == pytest.approx(1.0, abs=1e-6)
