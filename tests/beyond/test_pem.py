"""The peer by itself: local hashing against its closed forms, prefixes against the truth.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import itertools

import numpy as np
import pytest
import scipy
from strategies import BITS, COUNTS, FALSE_ALARM, NAMES

from ldpcash.beyond.pem import Pem, PemReports


def test_levels_reach_k():
    assert Pem(40, 1.0, start=16, step=12).lengths == [16, 28, 40]
    assert Pem(40, 1.0, start=10, step=7).lengths == [10, 17, 24, 31, 38, 40]
    assert Pem(8, 1.0, start=16).lengths == [8]


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_noise_is_that_of_optimal_local_hashing(epsilon):
    optimum = 2 * np.exp(epsilon / 2) / np.expm1(epsilon)  # Wang et al. 2017, with g = e^eps + 1
    assert optimum <= Pem(40, epsilon).noise < 1.01 * optimum


def test_a_hash_is_uniform_for_pairs():
    pem = Pem(40, 1.0)
    seeds = np.random.default_rng(1).integers(0, 2**64, 100_000, dtype=np.uint64)
    for a, b in itertools.combinations(np.array([0, 1, 5, 2**39], dtype=np.uint64), 2):
        pair = pem.hashed * pem._hash(seeds, np.array([a])) + pem._hash(seeds, np.array([b]))
        assert (
            scipy.stats.chisquare(np.bincount(pair, minlength=pem.hashed**2)).pvalue
            > FALSE_ALARM / 6
        )


def test_a_report_keeps_the_hash_as_often_as_epsilon_allows():
    pem = Pem(20, 1.5, start=20)
    sent = pem.reports(
        np.tile(BITS[0], (60_000, 1)), np.ones(60_000, bool), np.random.default_rng(2)
    )
    shift = (sent.values - pem._hash(sent.seeds, pem._numbers(BITS[:1]))) % pem.hashed
    law = np.full(pem.hashed, (1 - pem.match) / (pem.hashed - 1))
    law[0] = pem.match
    assert law.max() / law.min() == pytest.approx(np.exp(1.5))
    assert scipy.stats.chisquare(np.bincount(shift), 60_000 * law).pvalue > FALSE_ALARM
    nothing = pem.reports(
        np.tile(BITS[0], (60_000, 1)), np.zeros(60_000, bool), np.random.default_rng(3)
    )
    shift = (nothing.values - pem._hash(nothing.seeds, pem._numbers(BITS[:1]))) % pem.hashed
    assert scipy.stats.chisquare(np.bincount(shift)).pvalue > FALSE_ALARM


def supports(pem, how, trials, rng):
    """Counts of reports that fit two candidates of the last level: ``(trials, 2)``."""
    seen = []
    pem._extend = lambda support, packing: seen.append(support(0, pem._numbers(BITS[[0, 3]]))[0])
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
    others, g = (COUNTS // 100).sum() + 10 - 90, pem.hashed
    law = np.convolve(
        scipy.stats.binom.pmf(np.arange(91), 90, pem.match),
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
    for line, count in zip(lines, COUNTS, strict=False):
        assert line.frequency == pytest.approx(count / 20_000, abs=0.03)
        assert line.low < line.frequency < line.high


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


def test_values_fit_into_a_report_or_are_refused():
    sent = Pem(8, 11.0).reports(np.ones((9, 8)), np.ones(9, bool), np.random.default_rng(1))
    assert sent.values.dtype == np.uint16
    assert Pem(8, np.log(2**16 - 1)).hashed == 2**16
    for epsilon in (np.nextafter(np.log(2**16 - 1), 12), 11.1, 800.0):
        with pytest.raises(ValueError, match=r"^epsilon = .*: needs at most 11.09"):
            Pem(8, epsilon)


@pytest.mark.parametrize(
    "wrong", [{"k": 64}, {"epsilon": 0.0}, {"start": 25}, {"step": 0}, {"keep": 0}, {"fdr": 7}]
)
def test_wrong_arguments(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Pem(**{"k": 40, "epsilon": 1.0, **wrong})
