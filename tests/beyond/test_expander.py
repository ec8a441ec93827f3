"""The bound on PrivateExpanderSketch: the one step that is drawn, and what it then can find.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import itertools

import numpy as np
import pytest
import scipy
from strategies import BITS, COUNTS, NAMES

from ldpcash.beyond.expander import ExpanderBound
from ldpcash.beyond.local_hashing import keys_of


def test_a_symbol_is_as_often_right_as_for_clients():
    """A cell of 8 symbols: each of 120 clients holds its right one, or something else, or none."""
    bound, rng, trials = ExpanderBound(3, 1.0, payload=3), np.random.default_rng(1), 2000
    everything = np.array(list(itertools.product((0, 1), repeat=9)), dtype=np.uint8)
    cell = keys_of(everything[:8])  # the right symbol first
    own = np.repeat(keys_of(everything[[0, 100, 200, 300]]), [14, 50, 40, 16])
    right = 0
    for _ in range(trials):
        seeds = rng.integers(0, 2**64, 120, dtype=np.uint64)
        sent = bound.oracle.send(seeds, own, np.arange(120) < 104, rng)
        counts = bound.oracle.count(seeds, sent, cell)
        right += counts[0] == counts.max()
    chances = bound.right(np.full(20_000, 14), 120, rng)
    error = np.sqrt(chances.mean() * (1 - chances.mean()) / trials)
    assert 0.3 < chances.mean() < 0.7
    assert abs(right / trials - chances.mean()) < 1.1 * error * scipy.stats.norm.isf(5e-7)


@pytest.mark.parametrize("options", [{}, {"payload": 5, "coordinates": 6, "edges": 2, "hashed": 3}])
def test_an_item_of_the_smallest_frequency_is_found_half_the_time(options):
    """Noise is nearly Gaussian at a small epsilon and with many clients."""
    bound, rng = ExpanderBound(20, 1.0, **options), np.random.default_rng(2)
    clients = int(2_000_000 * bound.share[0])
    held = round(bound.smallest(2_000_000) * clients)
    wins = rng.random((20_000, bound.coordinates)) < bound.right(
        np.full((20_000, bound.coordinates), held), clients, rng
    )
    assert abs((wins.sum(axis=1) >= bound.needed).mean() - 0.5) < 0.03  # 0.018 would be chance


def test_a_bound_with_less_in_its_favour_finds_less():
    best, rng = ExpanderBound(40, 2.0), np.random.default_rng(3)
    worse = [
        ExpanderBound(40, 2.0, edges=3, hashed=5),
        ExpanderBound(40, 2.0, payload=4),
        ExpanderBound(40, 2.0, final=0.8),
        ExpanderBound.published(40, 2.0),
    ]
    assert all(one.smallest(10**6) > best.smallest(10**6) for one in worse)
    # Below what all M symbols together tell, sqrt(2 k log 2), no code could be found.
    limit = np.sqrt(2 * 40 * np.log(2)) * best.oracle.noise / np.sqrt(10**6 * (1 - best.final))
    assert best.smallest(10**6) > limit
    bits = np.eye(1, 40, dtype=np.uint8)
    held = round(0.5 * best.smallest(10**6) * 10**6)
    assert sum(bool(best.draw(bits, [held], rng, 10**6 - held)) for _ in range(50)) == 0


def test_frequent_items_are_found_and_nothing_else():
    bound = ExpanderBound(20, 3.0, payload=10, final=0.2)
    lines = bound.draw(BITS, 5 * COUNTS, np.random.default_rng(4), 4850, NAMES)
    assert [line.item for line in lines][:3] == ["ANNA", "BOB", "CAY"]
    # 20,000 clients are in the final count, of whom half tell the truth: 6 standard errors.
    for line, count in zip(lines, 5 * COUNTS, strict=False):
        assert line.frequency == pytest.approx(count / 100_000, abs=6 * 1.1 / np.sqrt(20_000))
        assert line.low < line.frequency < line.high
    short, rng = ExpanderBound(2, 1.0, payload=1, fdr=0.99), np.random.default_rng(5)
    items = [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert not any(short.draw(items, [0, 0, 0, 0], rng, 1000) for _ in range(20))


def test_published_sizes():
    sizes = [ExpanderBound.published(k, 2.0) for k in (40, 64, 128)]
    assert [(one.coordinates, one.payload, one.symbol) for one in sizes] == [
        (8, 10, 25),
        (11, 12, 30),
        (19, 14, 35),
    ]
    assert all(one.payload * one.coordinates >= 2 * one.k for one in sizes)


def test_no_client():
    with pytest.raises(ValueError, match="no client"):
        ExpanderBound(20, 3.0).draw(BITS, np.zeros(4, int), np.random.default_rng(1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"epsilon": 0.0},
        {"payload": 0},
        {"coordinates": 2},
        {"edges": -1},
        {"edges": 5, "hashed": 10},
        {"hashed": 1.5},
        {"final": 1.0},
        {"fdr": 7},
    ],
)
def test_wrong_arguments(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ExpanderBound(**{"k": 40, "epsilon": 1.0, **wrong})
