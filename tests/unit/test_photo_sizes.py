import pytest

from remeasure.instances import sizes
from remeasure.instances.sizes import Size

SCALES = (1.0, 1.414, 2.0)


# Landmark card, section 5: the table of worked sizes.
@pytest.mark.parametrize(
    ("size", "expected", "tokens"),
    [
        ((1024, 768), [(294, 224), (434, 322), (602, 448)], [337, 714, 1377]),
        ((1024, 683), [(336, 224), (476, 322), (672, 448)], [385, 783, 1537]),
        ((301, 587), [(224, 434), (322, 630), (448, 868)], [497, 1036, 1985]),
        ((3000, 600), [(1022, 224), (1022, 322), (1022, 448)], [1169, 1680, 2337]),
        ((500, 500), [(224, 224), (322, 322), (448, 448)], [257, 530, 1025]),
    ],
)
def test_the_worked_sizes_of_the_card_come_out(size, expected, tokens):
    found = [sizes.scaled(Size(*size), scale) for scale in SCALES]
    assert found == expected
    assert [sizes.n_tokens(size) for size in found] == tokens


def test_a_picture_turned_by_a_quarter_has_the_turned_size():
    assert sizes.scaled(Size(768, 1024), 2.0) == (448, 602)


def test_squeezing_begins_where_the_card_says():
    # 1022 / 224 = 4.5625, 1022 / 322 = 3.17, 1022 / 448 = 2.28: up to there both sides grow alike.
    assert sizes.scaled(Size(4562, 1000), 1.0) == (1022, 224)
    assert sizes.scaled(Size(4000, 1000), 1.0) == (896, 224)
    assert sizes.scaled(Size(3000, 1000), 1.414) == (966, 322)
    assert sizes.scaled(Size(2300, 1000), 2.0) == (1022, 448)


def test_halves_go_to_the_even_number_of_patches():
    # 16 patches on the short side: 33/32 of it is 16.5 -> 16, 35/32 is 17.5 -> 18.
    assert sizes.scaled(Size(528, 512), 1.0) == (224, 224)
    assert sizes.scaled(Size(560, 512), 1.0) == (252, 224)


def test_a_line_of_pixels_is_as_long_as_the_limit_lets_it():
    assert sizes.scaled(Size(1, 40), 1.0) == (224, 1022)
    assert sizes.scaled(Size(40, 1), 1.414) == (1022, 322)
    assert sizes.scaled(Size(1, 1), 2.0) == (448, 448)


def test_patches_of_another_network_have_their_own_sizes():
    # 160 px are 5 patches of 32; 640 x 480 at 4/3 of it is 6.67 -> 7 patches; 226.24 px are 7.07 -> 7.
    assert sizes.scaled(Size(640, 480), 1.0, 160, 32, 512) == (224, 160)
    assert sizes.scaled(Size(640, 480), 1.414, 160, 32, 512) == (288, 224)
    assert sizes.scaled(Size(40, 1), 1.0, 160, 32, 512) == (512, 160)


def test_local_descriptors_see_each_side_at_its_nearest_patch():
    # Landmark card, section 3.3: 1024 x 768 -> 1022 x 770 -> 73 x 55 = 4,015 patches.
    found = sizes.native(Size(1024, 768))
    assert found == (1022, 770)
    assert sizes.n_tokens(found) - 1 == 4015
    assert sizes.native(Size(1, 40)) == (14, 42)
    assert sizes.native(Size(6, 7)) == (14, 14)


def test_the_longest_side_can_be_limited():
    assert sizes.native(Size(1024, 768), 16, 320) == (320, 240)
    assert sizes.native(Size(100, 50), 16, 320) == (320, 160)
    assert sizes.native(Size(4000, 3), 16, 320) == (320, 16)


def test_a_photograph_without_pixels_is_a_defect_of_the_caller():
    with pytest.raises(ValueError, match="0 x 4"):
        sizes.scaled(Size(0, 4), 1.0)
    with pytest.raises(ValueError, match="0 x 4"):
        sizes.native(Size(0, 4))
