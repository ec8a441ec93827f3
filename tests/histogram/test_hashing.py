"""Hashes and public randomness: uniform for pairs.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM

from ldpcash.histogram.hashing import ChannelHash, groups, public_number_in, public_numbers


class TestHash:
    def test_is_pairwise_independent(self):
        items = [[0, 0, 0, 0, 0], [1, 0, 1, 1, 0]]
        pairs = [tuple(ChannelHash(5, 4, seed)(items)) for seed in range(8000)]
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

    @pytest.mark.parametrize("channels", [0, 3, 2**17, 1.5])
    def test_wrong_channels(self, channels):
        with pytest.raises(ValueError, match="count ="):
            ChannelHash(3, channels, 1)


class TestPublicRandomness:
    def test_a_client_needs_only_its_own_lane(self):
        seeds = np.random.default_rng(1).integers(0, 2**64, 100, dtype=np.uint64)
        channel = np.random.default_rng(2).integers(0, 37, 100)
        table = public_numbers(seeds, 37)
        assert table.shape == (100, 37)
        np.testing.assert_array_equal(
            table[np.arange(100), channel], public_number_in(seeds, channel)
        )

    def test_lanes_of_two_channels_are_uniform_together(self):
        seeds = np.random.default_rng(3).integers(0, 2**64, 200_000, dtype=np.uint64)
        table = public_numbers(seeds, 8) & 15
        for a, b in itertools.combinations(range(8), 2):
            counts = np.bincount(16 * table[:, a].astype(int) + table[:, b], minlength=256)
            assert scipy.stats.chisquare(counts).pvalue > FALSE_ALARM / 28

    def test_groups_are_uniform_and_independent_of_lanes(self):
        seeds = np.random.default_rng(4).integers(0, 2**64, 100_000, dtype=np.uint64)
        joint = 16 * groups(seeds, 4) + (public_numbers(seeds, 1)[:, 0] & 15)
        assert scipy.stats.chisquare(np.bincount(joint, minlength=64)).pvalue > FALSE_ALARM
