"""Intervals of what was found, against truncated normal laws, simulation and the decoder.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM

from ldpcash.codec.symbol_decoder import SymbolDecoder
from ldpcash.histogram.intervals import conditional_interval, listing_chance
from ldpcash.histogram.symbols import symbol_code


def always(u):
    return np.ones_like(u)


def even(scale):
    """A deviation that is the same at all frequencies."""
    return lambda frequency: np.full_like(frequency, scale)


@pytest.mark.parametrize("estimate", [0.081, 0.09, 0.1, 0.13])
def test_ends_are_those_of_a_truncated_normal_law(estimate):
    """P(U >= estimate | U >= bar) is 2.5 % at the lower end and 97.5 % at the upper one."""
    bar, scale, norm = 0.08, 0.01, scipy.stats.norm

    def share(frequency):
        return norm.sf((estimate - frequency) / scale) / norm.sf((bar - frequency) / scale)

    ends = conditional_interval(np.array([estimate]), even(scale), np.array([bar]), always)
    for end, wanted in zip(ends, (0.025, 0.975), strict=True):
        if end[0] > 1e-9:
            assert share(end[0]) == pytest.approx(wanted, rel=2e-3)
        else:  # no frequency is so low
            assert share(0.0) > wanted


def test_far_above_the_bar_it_is_the_usual_one():
    estimate = np.array([0.3, 0.5])
    low, high = conditional_interval(estimate, even(0.01), np.array([0.08, 0.08]), always)
    np.testing.assert_allclose(low, estimate - 1.96 * 0.01, atol=1e-4)
    np.testing.assert_allclose(high, estimate + 1.96 * 0.01, atol=1e-4)


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("frequency", [0.05, 0.075, 0.1])
def test_intervals_of_what_was_found_cover(frequency, listed):
    """Also of an item that is found once in a thousand times. Two-sided, against 95 %."""
    rng, bar, scale = np.random.default_rng(1), 0.08, 0.01

    def chance(u):
        return scipy.stats.norm.cdf((u - 0.083) / 0.004) if listed else np.ones_like(u)

    estimates = frequency + scale * rng.standard_normal(3_000_000 if frequency < 0.06 else 20_000)
    seen = estimates[(estimates > bar) & (rng.random(estimates.size) < chance(estimates))][:3000]
    bars = np.full(seen.shape, bar)
    low, high = conditional_interval(seen, even(scale), bars, chance)
    covered = np.count_nonzero((low <= frequency) & (frequency <= high))
    assert scipy.stats.binomtest(covered, len(seen), 0.95).pvalue > FALSE_ALARM
    usual = np.count_nonzero(np.abs(seen - frequency) <= 1.96 * scale)
    assert usual < 0.93 * len(seen) or frequency == 0.1  # which is why


@pytest.mark.parametrize(
    ("k", "width", "list_size"), [(40, 3, 32), (64, 6, 32), (40, 10, 8), (128, 6, 32)]
)
def test_the_decoder_lists_what_the_curve_says(k, width, list_size):
    """Strengths are even over a range, so the mean says where half of all items are listed.

    It is 4 % of the limit from the curve's at most. With so many frames the mean has a standard
    error of 0.8 % at most, and the curve is off by 3 %.
    """
    code, rng = symbol_code(k, width), np.random.default_rng(1)
    limit = np.sqrt(2 * k * np.log(2))
    frames = 120 if k < 128 else 60
    strength = limit * np.linspace(0.8, 1.3, frames)
    items = rng.integers(0, 2, (frames, k), dtype=np.uint8)
    live = code.encode(np.eye(k, dtype=np.uint8)).any(axis=0)
    signs = code.signs(items).astype(np.float64) * live
    noise = rng.standard_normal(signs.shape) * live
    # The noise along the item is taken out: the strength is that of what is seen.
    noise -= signs * (signs * noise).sum(axis=1, keepdims=True) / live.sum()
    y = signs * (strength / np.sqrt(live.sum()))[:, None] + noise
    found = SymbolDecoder(code, list_size).decode_list(-y)[0][:, :12]
    listed = (found == items[:, None]).all(axis=2).any(axis=1)
    model = listing_chance(strength, k, list_size)
    assert abs(listed.mean() - model.mean()) < 0.04 / 0.5
    assert listed[strength > 1.2 * limit].mean() > 0.9
    assert listed[strength < 0.85 * limit].mean() < 0.1


def test_a_longer_list_lists_more():
    strength = np.linspace(5, 10, 21)
    chances = [listing_chance(strength, 40, size) for size in (8, 32, 128)]
    assert (np.diff(chances, axis=0) >= 0).all()
    assert (np.diff(chances, axis=1) >= 0).all()
