"""The search: what it finds, and what it must not find.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import numpy as np
import pytest
import scipy
from strategies import BITS, COUNTS, FALSE_ALARM, NAMES, OPTIONS, names_of

from ldpcash.histogram.plan import Plan
from ldpcash.histogram.population import draw_collector
from ldpcash.histogram.search import _Search


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_frequent_items_are_found_with_their_frequencies(options):
    plan = Plan.choose(20_000, 20, 3.0, hash_seed=5, **options)
    lines = draw_collector(plan, BITS, COUNTS, np.random.default_rng(2), 970).histogram(NAMES)
    assert names_of(lines)[:3] == ["ANNA", "BOB", "CAY"]
    for line, count in zip(lines, COUNTS, strict=False):
        assert line.low < line.frequency < line.high
        # Five standard errors, which is 2.55 half widths of the interval.
        assert abs(line.frequency - count / 20_000) < 2.55 * (line.high - line.frequency)


def test_items_that_meet_in_a_channel_are_told_apart():
    plan = Plan.choose(50_000, 20, 4.0, count=1)
    counts = [25_000, 12_000, 8_000, 0]
    lines = draw_collector(plan, BITS, counts, np.random.default_rng(3), 5000).histogram(NAMES)
    assert names_of(lines)[:3] == ["ANNA", "BOB", "CAY"]
    for line, count in zip(lines, counts, strict=False):
        assert line.frequency == pytest.approx(count / 50_000, abs=0.01)


def test_noise_alone_is_seldom_an_item():
    """fdr = 5 %: of 400 empty populations, more than 43 with an item are one in 1e6."""
    plan = Plan.choose(5000, 10, 1.0, hash_seed=2)
    rng = np.random.default_rng(4)
    none, nobody = np.empty((0, 10), dtype=np.uint8), np.empty(0, dtype=int)
    false = sum(bool(draw_collector(plan, none, nobody, rng, 5000).histogram()) for _ in range(400))
    assert false <= scipy.stats.binom.isf(FALSE_ALARM, 400, 0.05)
    assert false > 0  # and the threshold is not far off: 1e-6 if the rate were above 3.5 %


def test_only_words_that_hash_to_their_channel_are_candidates(monkeypatch):
    """Of 64 channels with 3 words each, 3 words on average; 40 would be one run in 1e27."""
    pools = []
    accept = _Search.accept
    monkeypatch.setattr(
        _Search,
        "accept",
        lambda self, pool, fdr: (pools.append(pool), accept(self, pool, fdr))[1],
    )
    plan = Plan.choose(5000, 20, 1.0, hash_seed=2)
    assert plan.channels.count == 64
    none, nobody = np.empty((0, 20), dtype=np.uint8), np.empty(0, dtype=int)
    draw_collector(plan, none, nobody, np.random.default_rng(7), 5000).histogram()
    assert sum(map(len, pools)) < 40


@pytest.mark.parametrize(
    ("options", "items"), [({}, 400), ({"width": 9, "count": 64}, 100)], ids=["plain", "wide"]
)
def test_intervals_of_what_is_found_cover(options, items):
    """Of items near the threshold, some of which are found, with lighter ones beside them.

    A two-sided test against 95 %.
    """
    plan = Plan.choose(100_000, 40, 3.0, hash_seed=5, **options)
    rng = np.random.default_rng(6)
    light = 0.6 * plan.smallest(100_000)
    shares = np.array([*plan.smallest(100_000) * np.linspace(0.85, 1.3, 10), *[light] * 10])
    covered = found = 0
    while found < items:
        bits = rng.integers(0, 2, (20, 40), dtype=np.uint8)
        counts = rng.binomial(100_000, shares)
        held = {row.tobytes(): c / 100_000 for row, c in zip(bits, counts, strict=True)}
        for line in draw_collector(
            plan, bits, counts, rng, 100_000 - int(counts.sum())
        ).histogram():
            true = held.get(line.item.tobytes())
            if true is not None:
                found += 1
                covered += line.low <= true <= line.high
    assert scipy.stats.binomtest(covered, found, 0.95).pvalue > FALSE_ALARM


def test_what_a_channel_hears_of_others_is_taken_out():
    """Symbols of more bits than channels have: a heavy item is no false one elsewhere."""
    plan = Plan.choose(200_000, 20, 8.0, width=10, count=64)
    assert not plan.channels.apart
    counts = [60_000, 400, 300, 200]
    lines = draw_collector(plan, BITS, counts, np.random.default_rng(1), 139_100).histogram(NAMES)
    assert names_of(lines)[:3] == ["ANNA", "BOB", "CAY"]
    assert set(names_of(lines)) <= {"ANNA", "BOB", "CAY", "DORA"}
    for line, count in zip(lines, counts, strict=False):
        # Five standard errors, which is 2.55 half widths of the interval.
        assert abs(line.frequency - count / 200_000) < 2.55 * (line.high - line.low) / 2


def test_items_too_light_to_be_found_bring_no_false_ones():
    """Sixty of one frequency in one channel: words made of several of them look frequent."""
    rng, false = np.random.default_rng(9), 0
    for seed in range(6):
        plan = Plan.choose(10**7, 40, 2.0, count=1, hash_seed=seed)
        items = rng.integers(0, 2, (60, 40), dtype=np.uint8)
        found = draw_collector(plan, items, [10**7 // 60] * 60, rng, 40).histogram()
        held = {row.tobytes() for row in items}
        false += sum(line.item.tobytes() not in held for line in found)
    assert false <= 1  # without the rule, four and more


def test_nobody_answered():
    plan = Plan.choose(100, 8, 40.0, empty=0.9)
    assert plan.channels.blank
    nothing = np.empty((0, 8), dtype=np.uint8), np.empty(0, dtype=int)
    assert draw_collector(plan, *nothing, np.random.default_rng(1), 5).histogram() == []


@pytest.mark.parametrize("options", [{}, {"width": 1, "decision": "hard"}, {"protocol": "Cash"}])
def test_a_frequency_is_in_its_own_interval(options):
    """Also of what just cleared the bar, with a rule that lets much in."""
    plan = Plan.choose(2000, 4, 1.0, fdr=0.5, **options)
    rng, items = np.random.default_rng(2), np.eye(4, dtype=np.uint8)
    lines = [
        line
        for _ in range(40)
        for line in draw_collector(plan, items, [300, 200, 100, 50], rng, 1350).histogram()
    ]
    assert lines
    assert all(line.frequency > 0 for line in lines)
    assert all(line.low <= line.frequency <= line.high for line in lines)


def test_nothing_is_accepted_twice():
    plan = Plan.choose(50_000, 20, 4.0, count=2)
    rng = np.random.default_rng(8)
    lines = draw_collector(plan, BITS, [20_000, 15_000, 9000, 4000], rng, 2000).histogram(NAMES)
    assert set(names_of(lines)) >= {"ANNA", "BOB", "CAY", "DORA"}
    assert len(set(names_of(lines))) == len(lines)


def test_bits_without_a_packing():
    plan = Plan.choose(20_000, 20, 3.0)
    line = draw_collector(plan, BITS, COUNTS, np.random.default_rng(2)).histogram()[0]
    np.testing.assert_array_equal(line.item, BITS[0])
