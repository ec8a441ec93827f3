"""How clients fall on cells, against binomial laws.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM

from ldpcash.protocols.laws import fair_heads, holders, spread_evenly


def test_holders_are_whole():
    assert holders(0.7, 1000) == 700  # although 0.7 * 1000 is not 700 in floating point
    assert holders(1 / 3, 10) == 3
    assert (holders(0.0, 7), holders(1.0, 7)) == (0, 7)


def test_nonsense_is_refused(subtests):
    for wrong in ("100", None, True, float("nan"), 2**53 + 1):
        with (
            subtests.test(wrong=wrong),
            pytest.raises(ValueError, match=r"clients = .*: needs a whole number from 1 to"),
        ):
            holders(0.5, wrong)


class TestSpreading:
    @pytest.mark.parametrize("count", [1, 7, 64, 65, 300, 1000, 5000])
    def test_halves_are_binomial(self, count):
        drawn = spread_evenly(np.full(20_000, count), 1, np.random.default_rng(count))
        assert (drawn.sum(axis=0) == count).all()
        values = np.arange(count + 1)
        expected = scipy.stats.binom.pmf(values, count, 0.5) * 20_000
        seen = np.bincount(drawn[0], minlength=count + 1)
        common = expected >= 8
        expected = np.append(expected[common], expected[~common].sum() + 1e-9)
        seen = np.append(seen[common], seen[~common].sum())
        statistic = ((seen - expected) ** 2 / expected).sum()
        assert scipy.stats.chi2.sf(statistic, max(1, len(seen) - 1)) > FALSE_ALARM

    def test_counts_around_the_ends_of_integer_types(self, subtests):
        for count in (0, 191, 192, 255, 256, 65_471, 65_535, 70_000, 2**31):
            with subtests.test(count=count):
                cells = spread_evenly(np.array([count, 1]), 3, np.random.default_rng(count))
                assert cells.sum(axis=0).tolist() == [count, 1]
                # Each cell is binomial; seven standard deviations are exceeded with 3e-12.
                spread = np.sqrt(count * 7 / 64) + 1
                assert (abs(cells[:, 0] - count / 8) <= 7 * spread).all()

    def test_no_levels(self):
        cells = spread_evenly(np.array([2**31, 5]), 0, np.random.default_rng(0))
        assert cells.tolist() == [[2**31, 5]]

    def test_cells_are_alike_and_nobody_is_lost(self):
        counts = np.arange(3000)
        cells = spread_evenly(counts, 4, np.random.default_rng(1))
        assert cells.shape == (16, 3000)
        np.testing.assert_array_equal(cells.sum(axis=0), counts)
        totals = cells.sum(axis=1)
        statistic = ((totals - totals.mean()) ** 2 / totals.mean()).sum()
        assert scipy.stats.chi2.sf(statistic, 15) > FALSE_ALARM

    def test_counts_of_any_size_and_type(self, subtests):
        """At each edge of a word or an integer type; 6 standard deviations, below 2e-9 each."""
        for most in (60, 64, 65, 127, 128, 255, 256, 2048, 2049, 32767, 32768):
            rng = np.random.default_rng(1)
            counts = np.full(2000, most)
            counts[::3] = max(0, most - 70)
            counts[::7] = 0
            with subtests.test(most=most):
                cells = spread_evenly(counts, 3, rng)
                assert (cells.sum(axis=0, dtype=np.int64) == counts).all()
                assert (cells >= 0).all()
            for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64):
                if most <= np.iinfo(kind).max:
                    with subtests.test(most=most, kind=kind):
                        heads = fair_heads(counts.astype(kind), rng).astype(np.int64)
                        assert ((heads >= 0) & (heads <= counts)).all()
                        assert abs(heads.sum() - counts.sum() / 2) < 6 * (counts.sum() / 4) ** 0.5
