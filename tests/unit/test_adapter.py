import time

import numpy as np
import pytest

from remeasure.encoders import adapter
from remeasure.encoders.adapter import Adapter
from remeasure.errors import RemeasureError


def test_residual_map_by_hand():
    # x = (1, 0): x down = 2, times up (0, 0.375) = (0, 0.75); x + that = (1, 0.75), length 1.25.
    made = Adapter(np.float32([[2], [0]]), np.float32([[0, 0.375]]), "m")
    assert made.apply(np.float32([[1, 0]])).tolist() == np.float32([[0.8, 0.6]]).tolist()


def test_with_up_zero_nothing_changes_not_even_the_last_bit():
    rows = np.float32([[0.6, 0.8], [1, 0]])
    made = Adapter(np.float32([[1], [1]]), np.zeros((1, 2), np.float32), "m")
    assert made.apply(rows).tobytes() == rows.tobytes()


def test_file_comes_back_and_equal_content_is_equal_bytes(tmp_path):
    made = Adapter(np.float32([[2], [0]]), np.float32([[0, 0.375]]), "model-hash")
    adapter.write(tmp_path / "a.h5", made)
    time.sleep(1.1)
    adapter.write(tmp_path / "b.h5", made)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    found = adapter.read(tmp_path / "a.h5")
    assert found.down.tolist() == [[2], [0]] and found.up.tolist() == [[0, 0.375]]
    assert found.base_sha256 == "model-hash" and len(found.sha256) == 64


def test_adapter_of_another_model_is_refused():
    made = Adapter(np.float32([[2], [0]]), np.float32([[0, 0.375]]), "one")
    made.check_base("one", 2)
    for model, dim in (("other", 2), ("one", 3)):
        with pytest.raises(RemeasureError, match="train it again"):
            made.check_base(model, dim)


@pytest.mark.parametrize("up", [[[0, 1], [1, 0]], [[np.inf, 0]]])
def test_shapes_that_do_not_fit_and_infinite_values_are_refused(tmp_path, up):
    adapter.write(tmp_path / "a.h5", Adapter(np.float32([[2], [0]]), np.float32(up), "m"))
    with pytest.raises(RemeasureError, match="do not make a map"):
        adapter.read(tmp_path / "a.h5")


def test_a_file_that_is_no_adapter_is_refused(tmp_path):
    (tmp_path / "a.h5").write_text("no")
    with pytest.raises(RemeasureError, match="not an adapter"):
        adapter.read(tmp_path / "a.h5")
