"""Random words. Those of the operating system have no fixed seed: false alarms of 6e-7."""

import math

import numpy as np
import pytest

from ldpcash.base.randomness import random_words


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_words_of_any_width(width):
    for rng in (None, np.random.default_rng(1)):
        words = random_words((3, 1001), width, rng)
        assert words.shape == (3, 1001)
        assert words.dtype.itemsize * 8 == width
        words[0] = 0  # may be written to


def test_every_other_bit_of_the_operating_system_is_one():
    words = random_words((100_000,), 64, None)
    ones = sum(int(np.bitwise_count(words >> np.uint64(b) & np.uint64(1)).sum()) for b in range(64))
    assert abs(ones - 3_200_000) < 5 * math.sqrt(6_400_000 / 4)  # 6e-7
    assert not np.array_equal(words, random_words((100_000,), 64, None))
