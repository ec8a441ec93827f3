"""Random words. Those of the operating system have no fixed seed: false alarms of 6e-7."""

import math

import numpy as np
import pytest

from ldpcash.base.randomness import random_below, random_words


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


def test_numbers_below_a_bound_are_equally_likely():
    """A quarter of all words is drawn again here, and of the rest a third falls in each part; at
    six standard errors, 4e-9."""
    for rng in (None, np.random.default_rng(2)):
        numbers = random_below(3 * 2**62, 90_000, rng)
        parts = np.bincount((numbers >> np.uint64(62)).astype(int))
        assert len(parts) == 3
        assert (np.abs(parts - 30_000) < 6 * math.sqrt(20_000)).all()
        assert set(random_below(3, 1000, rng).tolist()) == {0, 1, 2}
        assert set(random_below(1, 10, rng).tolist()) == {0}
