"""The hash of items to channels: uniform for pairs.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

from collections import Counter

import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM

from ldpcash.histogram.hashing import GOLDEN, ChannelHash, mix


class TestHash:
    def test_is_pairwise_independent(self):
        items = [[0, 0, 0, 0, 0], [1, 0, 1, 1, 0]]
        pairs = [tuple(ChannelHash(5, 4, seed)(items)) for seed in range(2000)]
        counts = Counter(pairs)
        assert len(counts) == 16
        assert scipy.stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM

    def test_is_the_affine_map_of_its_seed(self):
        channel = ChannelHash(70, 16, 3)  # more than one word
        rng = np.random.default_rng(3)
        matrix, shift = rng.integers(0, 2, (4, 70), dtype=np.uint8), rng.integers(0, 2, 4, np.uint8)
        items = np.random.default_rng(1).integers(0, 2, (50, 70))
        bits = (items @ matrix.T + shift) % 2
        np.testing.assert_array_equal(channel(items), bits @ [8, 4, 2, 1])

    def test_one_channel_has_all(self):
        assert ChannelHash(3, 1, 5)([[0, 1, 1], [1, 1, 1]]).tolist() == [0, 0]

    def test_no_items(self):
        assert ChannelHash(3, 4, 5)(np.zeros((0, 3), np.uint8)).tolist() == []

    @pytest.mark.parametrize("channels", [0, 3, 2**17, 1.5])
    def test_wrong_channels(self, channels):
        with pytest.raises(ValueError, match="count ="):
            ChannelHash(3, channels, 1)

    @pytest.mark.parametrize("items", [[0, 1, 1], [[0, 1]], [[0, 1, 2]]])
    def test_wrong_items(self, items):
        with pytest.raises(ValueError, match=r"^bits"):
            ChannelHash(3, 4, 1)(items)


def test_words_are_those_of_splitmix64():
    """The generator's first numbers with the seed 1234567, as its author's code prints them."""
    steps = np.uint64(1234567) + np.arange(1, 6, dtype=np.uint64) * GOLDEN
    assert mix(steps).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
