"""The peer by itself: prefixes against the truth, counts against their law.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import numpy as np
import pytest
import scipy
from strategies import BITS, COUNTS, FALSE_ALARM, NAMES

from ldpcash import Packing
from ldpcash.base.arrays import bits_of
from ldpcash.beyond.pem import Pem, PemReports, extended


def test_levels_reach_k():
    assert Pem(40, 1.0, start=16, step=12).lengths == [16, 28, 40]
    assert Pem(40, 1.0, start=10, step=7).lengths == [10, 17, 24, 31, 38, 40]
    assert Pem(8, 1.0, start=16).lengths == [8]
    assert Pem(128, 1.0, start=16, step=16).lengths == [*range(16, 129, 16)]
    assert len(Pem(256, 1.0, start=1, step=1).lengths) == 256  # groups are numbers of 8 bits


def test_prefixes_grow_in_order():
    np.testing.assert_array_equal(extended(np.zeros((1, 0), np.uint8), 5), bits_of(range(32), 5))
    grown = extended(bits_of([5, 2], 3), 4)
    np.testing.assert_array_equal(grown, bits_of([*range(80, 96), *range(32, 48)], 7))


def supports(pem, how, trials, rng):
    """Counts of reports that fit two candidates of the last level: ``(trials, 2)``."""
    seen = []
    pem._extend = lambda support, packing: seen.append(support(0, BITS[[0, 3]])[0])
    for _ in range(trials):
        if how == "law":
            pem.draw(BITS, COUNTS // 100, rng, empty=10)
        else:
            who = np.append(np.repeat(np.arange(4), COUNTS // 100), np.zeros(10, int))
            pem.search(pem.reports(BITS[who], np.arange(len(who)) < len(who) - 10, rng))
    return np.array(seen)


@pytest.mark.parametrize("how", ["law", "clients"])
def test_counts_have_their_exact_law(how):
    pem = Pem(20, 2.0, start=20)
    counts = supports(pem, how, 3000, np.random.default_rng(4))
    others, g = (COUNTS // 100).sum() + 10 - 90, pem.oracle.values
    law = np.convolve(
        scipy.stats.binom.pmf(np.arange(91), 90, pem.oracle.match),
        scipy.stats.binom.pmf(np.arange(others + 1), others, 1 / g),
    )
    laws = [law, scipy.stats.binom.pmf(np.arange(201), 200, 1 / g)]
    for column, law in zip(counts.astype(int).T, laws, strict=True):
        common = law * 3000 > 5
        expected = np.append(law[common], law[~common].sum()) * 3000
        seen = np.bincount(column, minlength=len(law))
        seen = np.append(seen[common], seen[~common].sum())
        assert scipy.stats.chisquare(seen, expected).pvalue > FALSE_ALARM
    assert abs(scipy.stats.pearsonr(*counts.T).statistic) * np.sqrt(3000) < scipy.stats.norm.isf(
        FALSE_ALARM
    )


@pytest.mark.parametrize("how", ["law", "clients"])
def test_frequent_items_are_found(how):
    pem = Pem(20, 3.0, start=8, step=6, keep=20)
    rng = np.random.default_rng(5)
    if how == "law":
        lines = pem.draw(BITS, COUNTS, rng, 970, NAMES)
    else:
        who = np.append(np.repeat(np.arange(4), COUNTS), np.zeros(970, int))
        sent = pem.reports(BITS[who], np.arange(len(who)) < COUNTS.sum(), rng)
        lines = pem.search(sent, NAMES)
    assert [line.item for line in lines][:3] == ["ANNA", "BOB", "CAY"]
    # 6667 clients are in the last group, and half of them tell the truth: 6 standard errors.
    for line, count in zip(lines, COUNTS, strict=False):
        assert line.frequency == pytest.approx(count / 20_000, abs=6 * 0.8 / np.sqrt(6667))
        assert line.low < line.frequency < line.high


@pytest.mark.parametrize("how", ["law", "clients"])
def test_long_items_that_differ_late_are_told_apart(how):
    """Prefixes that cross the border of a word of 64 bits, and items alike up to the last one."""
    packing, rng = Packing(128), np.random.default_rng(8)
    bits = packing.pack(["ein langes Wort_", "ein langes Wort-", "Rhabarber"])
    counts = np.array([5000, 3500, 2500])
    pem = Pem(128, 7.0, start=9, step=9, keep=4)
    if how == "law":
        lines = pem.draw(bits, counts, rng, 1000, packing)
    else:
        who = np.append(np.repeat(np.arange(3), counts), np.zeros(1000, int))
        lines = pem.search(pem.reports(bits[who], np.arange(12_000) < 11_000, rng), packing)
    words = [line.item for line in lines[:3]]
    assert words == ["ein langes Wort_", "ein langes Wort-", "Rhabarber"]
    # 860 clients are in the last group, and half of them tell the truth: 6 standard errors.
    for line, count in zip(lines, counts, strict=False):
        assert line.frequency == pytest.approx(count / 12_000, abs=0.12)


def test_noise_alone_is_seldom_an_item():
    pem = Pem(10, 1.0, start=6, step=4, keep=30)
    rng = np.random.default_rng(6)
    nobody = np.zeros(4, dtype=int)
    items = np.eye(4, 10, dtype=np.uint8)
    false = sum(bool(pem.draw(items, nobody, rng, 5000)) for _ in range(400))
    assert false <= scipy.stats.binom.isf(FALSE_ALARM, 400, 0.05)


def test_bits_without_a_packing_and_no_client():
    pem = Pem(20, 3.0, start=10, step=10)
    line = pem.draw(BITS, COUNTS, np.random.default_rng(7))[0]
    np.testing.assert_array_equal(line.item, BITS[0])
    nobody = PemReports(np.empty(0, np.uint64), np.empty(0, np.uint16), np.empty(0, np.uint8))
    with pytest.raises(ValueError, match="no client"):
        pem.search(nobody)


@pytest.mark.parametrize(
    "wrong", [{"k": 257}, {"epsilon": 0.0}, {"start": 25}, {"step": 0}, {"keep": 0}, {"fdr": 7}]
)
def test_wrong_arguments(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Pem(**{"k": 40, "epsilon": 1.0, **wrong})
