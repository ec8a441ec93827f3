"""The discrete Gaussian against arithmetic with 90 digits and enumeration.

Every statistical test has a false-alarm rate of at most 1e-6; that of the operating system's
randomness is the only one without a fixed seed.
"""

import math
from itertools import product

import mpmath as mp
import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM, discrete_masses

from ldpcash.privacy import discrete
from ldpcash.privacy.discrete import discrete_gaussian


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workdps(90):
        yield


class Script:
    """A source of words that were chosen beforehand, 64 bits each."""

    def __init__(self, *words):
        self.words = list(words)

    def integers(self, low, high, count, dtype):
        assert (low, high, dtype) == (0, 2**64, np.uint64)
        return np.array([self.words.pop(0) for _ in range(count)], dtype=np.uint64)


def exact_inverse(scale, u):
    """The smallest k with P(X <= k) > u."""
    reach = round(30 * scale)
    total = mp.mpf(0)
    for k, p in enumerate(discrete_masses(scale, reach), start=-reach):
        total += p
        if total > u:
            return k
    raise AssertionError


class TestTables:
    @pytest.mark.parametrize(("scale", "bits"), [(1.0, 64), (4.7, 192), (64.0, 64), (101.9, 128)])
    def test_bounds_enclose_every_cumulative_probability(self, scale, bits):
        low, high = discrete._bounds(scale, bits)
        reach = len(low) // 2
        mass = discrete_masses(scale, max(reach, round(40 * scale)))
        beyond = len(mass) // 2 - reach
        total = mp.fsum(mass[:beyond])
        for p, below, above in zip(mass[beyond:], low, high, strict=False):
            total += p
            assert below <= total * 2**bits < above + 1
            assert above - below <= 1
        assert low[0] == 0
        assert high[-2] == 2**bits - 1  # both ends stay open

    def test_each_short_answer_is_the_only_one(self):
        """All 2^16 words: the answer's cumulative probabilities enclose the word's interval."""
        scale = 64.0
        _, _, answers = discrete._tables(scale)
        mass = np.array([float(p) for p in discrete_masses(scale, 700)])
        above = np.cumsum(mass)
        words = np.arange(2**16)
        decided = answers != discrete._UNDECIDED
        index = answers[decided] + 700
        assert (words[decided] / 2**16 > above[index - 1] - 1e-12).all()
        assert ((words[decided] + 1) / 2**16 < above[index] + 1e-12).all()
        assert 0.98 < decided.mean() < 1


class TestDraws:
    @pytest.mark.parametrize("scale", [1.0, 9.3, 101.94249567877203, 3000.5])
    def test_the_law(self, scale):
        drawn = discrete_gaussian(scale, (400, 1000), np.random.default_rng(3)).ravel()
        reach = round(8 * scale)
        k = np.arange(-reach, reach + 1)
        expected = np.exp(-(k**2) / (2 * scale**2))
        expected *= drawn.size / expected.sum()
        seen = np.bincount(drawn + reach, minlength=len(k))
        width = max(1, round(scale / 8))  # neighbours go together, and so do rare ones
        cells = np.arange(len(k)) // width
        expected, seen = np.bincount(cells, expected), np.bincount(cells, seen)
        common = expected >= 20
        expected = np.append(expected[common], expected[~common].sum())
        seen = np.append(seen[common], seen[~common].sum())
        statistic = ((seen - expected) ** 2 / expected).sum()
        assert scipy.stats.chi2.sf(statistic, len(seen) - 1) > FALSE_ALARM

    def test_the_operating_system_s_randomness(self):
        drawn = discrete_gaussian(50.0, (300_000,), None)
        assert (
            scipy.stats.kstest(
                drawn + np.random.default_rng(1).random(drawn.size) - 0.5, "norm", (0, 50)
            ).pvalue
            > FALSE_ALARM
        )

    def test_open_draws_take_more_words(self, subtests):
        """Words that agree with a bound in all of 64 bits, and the exact inverse of all 128."""
        scale = 64.0
        low, _, _ = discrete._tables(scale)
        for which, last in product([0, 300, 837, 838, 900, -1], [0, 1, 2**63, 2**64 - 1]):
            with subtests.test(which=which, last=last):
                word = int(low[which])
                source = Script(word >> 48, (word << 16) & (2**64 - 1), last, 2**63)
                drawn = int(discrete_gaussian(scale, (1,), source)[0])
                assert len(source.words) <= 1  # at least three were needed
                u = (mp.mpf(word) * 2**64 + last + mp.mpf(1) / 2) / mp.mpf(2) ** 128
                assert drawn == exact_inverse(scale, u)

    def test_the_last_resort_goes_on_as_long_as_it_must(self):
        """U = 0.000... in 192 bits lies far out, at the probability of the fourth word."""
        source = Script(0, 0, 0, 2**63)
        drawn = int(discrete_gaussian(5.0, (1,), source)[0])
        assert drawn == exact_inverse(5.0, mp.mpf(2) ** -129)
        assert drawn < -60

    def test_bad_scales(self):
        for scale in (0.5, 2.0**17, math.nan):
            with pytest.raises(ValueError, match=r"scale = .*needs a number from 1 to 65536"):
                discrete_gaussian(scale, (1,), None)
