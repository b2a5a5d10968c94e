"""Images of tables that are no 8-bit ones in more than one channel are refused, not cut down."""

import struct

import pytest

from remeasure import eight_bits
from remeasure.errors import RemeasureError


def tiff(bits: int) -> bytes:
    """A TIFF of 2 x 1 RGB pixels without compression (TIFF 6.0, section 6)."""
    pixels = bytes(range(1, 7)) if bits == 8 else struct.pack("<6H", *range(1000, 7000, 1000))
    n_entries = 9
    behind = 8 + 2 + 12 * n_entries + 4
    entries = [
        (256, 4, 1, 2),  # width
        (257, 4, 1, 1),  # height
        (258, 3, 3, behind),  # bits of each sample
        (259, 3, 1, 1),  # no compression
        (262, 3, 1, 2),  # RGB
        (273, 4, 1, behind + 6),  # where the pixels begin
        (277, 3, 1, 3),  # samples of a pixel
        (278, 4, 1, 1),  # rows of a strip
        (279, 4, 1, len(pixels)),
    ]
    directory = struct.pack("<H", n_entries) + b"".join(struct.pack("<HHLL", *one) for one in entries)
    return (
        struct.pack("<2sHL", b"II", 42, 8) + directory + bytes(4) + struct.pack("<3H", *[bits] * 3) + pixels
    )


def test_colours_of_16_bits_are_refused():
    with pytest.raises(RemeasureError) as caught:
        eight_bits.convert(tiff(16), "0" * 64)
    assert str(caught.value) == (
        "has pixels of mode RGB with 16 bits a channel, expected grey, or RGB of 8 bits; save it as "
        "8-bit PNG or JPEG"
    )


def test_colours_of_8_bits_in_the_same_form_are_taken():
    data, done = eight_bits.convert(tiff(8), "0" * 64)
    assert data.startswith(b"\x89PNG") and (done.mode, done.minimum) == ("RGB", None)
