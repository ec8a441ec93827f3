"""The oracle that peers share, and their other common steps.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import itertools

import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM

from ldpcash.base.arrays import bits_of
from ldpcash.beyond.local_hashing import (
    HashOracle,
    accept,
    held_counts,
    keys_of,
    largest,
    lookup,
    split,
)


def test_keys_of_short_items_are_a_bijection_and_long_ones_use_every_bit():
    assert len(set(keys_of(bits_of(np.arange(2**14), 14)).tolist())) == 2**14
    long = np.vstack([np.zeros((1, 128), np.uint8), np.eye(128, dtype=np.uint8)])
    keys = keys_of(long)
    assert len(set(keys.tolist())) == 129
    flips = np.bitwise_count(keys[1:] ^ keys[0])  # each is binomial(64, 1/2) if well mixed
    assert abs(flips.mean() - 32) < scipy.stats.norm.isf(FALSE_ALARM / 2) * 4 / np.sqrt(128)


def test_a_key_does_not_depend_on_its_neighbours():
    rows = bits_of(np.arange(70_000), 17)
    assert (keys_of(rows)[66_000:] == keys_of(rows[66_000:])).all()
    assert len(keys_of(rows[:0])) == 0


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_noise_is_that_of_optimal_local_hashing(epsilon):
    optimum = 2 * np.exp(epsilon / 2) / np.expm1(epsilon)  # Wang et al. 2017, with g = e^eps + 1
    assert optimum * (1 - 1e-12) <= HashOracle(epsilon).noise < 1.01 * optimum
    sign = HashOracle(epsilon, values=2)
    assert sign.noise == pytest.approx((np.exp(epsilon) + 1) / np.expm1(epsilon))


@pytest.mark.parametrize("values", [None, 2])
def test_a_hash_is_uniform_for_pairs(values):
    oracle = HashOracle(1.0, values)
    seeds = np.random.default_rng(1).integers(0, 2**64, 100_000, dtype=np.uint64)
    keys = keys_of(bits_of([0, 1, 5, 2**39], 40))
    for a, b in itertools.combinations(keys, 2):
        pair = oracle.values * oracle.hash(seeds, a) + oracle.hash(seeds, b)
        seen = np.bincount(pair, minlength=oracle.values**2)
        assert scipy.stats.chisquare(seen).pvalue > FALSE_ALARM / 6


@pytest.mark.parametrize("values", [None, 2])
def test_a_report_keeps_the_hash_as_often_as_epsilon_allows(values):
    oracle, rng = HashOracle(1.5, values), np.random.default_rng(2)
    seeds = rng.integers(0, 2**64, 60_000, dtype=np.uint64)
    keys = np.full(60_000, 7, dtype=np.uint64)
    law = np.full(oracle.values, (1 - oracle.match) / (oracle.values - 1))
    law[0] = oracle.match
    assert law.max() / law.min() == pytest.approx(np.exp(1.5))
    assert law.min() < 1 / oracle.values < law.max()  # a client that holds nothing
    for held, expected in ((True, law), (False, np.full(oracle.values, 1 / oracle.values))):
        sent = oracle.send(seeds, keys, np.full(60_000, held), rng)
        shift = (sent - oracle.hash(seeds, keys)) % oracle.values
        assert scipy.stats.chisquare(np.bincount(shift), 60_000 * expected).pvalue > FALSE_ALARM


@pytest.mark.parametrize("how", ["law", "clients"])
def test_estimates_are_unbiased_and_have_the_variance_of_the_formula(how):
    oracle, rng, trials = HashOracle(2.0), np.random.default_rng(3), 3000
    keys, held, clients = np.array([5, 6, 7], dtype=np.uint64), np.array([90, 20, 0]), 200
    own = np.repeat(keys, [90, 20, 90])
    counts = np.empty((trials, 3))
    for trial in counts:
        if how == "law":
            trial[:] = oracle.draw(held, clients, rng)
        else:
            seeds = rng.integers(0, 2**64, clients, dtype=np.uint64)
            sent = oracle.send(seeds, own, np.arange(clients) < 110, rng)
            trial[:] = oracle.count(seeds, sent, keys)
    found = oracle.frequency(counts, clients)
    p, q = oracle.match, 1 / oracle.values
    variance = (held * p * (1 - p) + (clients - held) * q * (1 - q)) / (clients * (p - q)) ** 2
    assert variance[2] == pytest.approx(oracle.noise**2 / clients)
    z = scipy.stats.norm.isf(FALSE_ALARM / 20)
    assert (abs(found.mean(axis=0) - held / clients) < z * np.sqrt(variance / trials)).all()
    assert (abs(found.var(axis=0) / variance - 1) < z * np.sqrt(2.2 / trials)).all()
    assert (abs(np.corrcoef(found.T)[np.triu_indices(3, 1)]) < z / np.sqrt(trials)).all()


def test_what_stands_out_is_what_scipy_says():
    rng = np.random.default_rng(4)
    for _ in range(20):
        p = np.append(rng.random(30), rng.random(10) * 0.01)
        frequency, bits = -p, bits_of(np.arange(40), 6)
        lines = accept(bits, frequency, np.ones(40), p, 40, 0.1)
        expected = np.flatnonzero(scipy.stats.false_discovery_control(p) <= 0.1)
        expected = expected[np.argsort(p[expected])]
        np.testing.assert_array_equal([line.item for line in lines], bits[expected])
        assert all((line.low, line.high) == (line[1] - 1, line[1] + 1) for line in lines)
    assert accept(bits, frequency, np.ones(40), p, 10**9, 1e-3) == []


def test_a_p_value_is_the_probability_of_so_many_reports():
    """An item is accepted, at an fdr between two values, exactly if its binomial tail is below."""
    oracle, count, clients = HashOracle(2.0), 40, 200
    tail = scipy.stats.binom.sf(count - 1, clients, 1 / oracle.values)
    bits, counts = np.ones((1, 3), dtype=np.uint8), np.array([float(count)])
    assert oracle.accept(bits, counts, clients, 1, tail * 1.0001)
    assert not oracle.accept(bits, counts, clients, 1, tail * 0.9999)
    assert not oracle.accept(bits, counts, clients, 2, tail * 1.0001)
    assert not oracle.accept(bits, np.zeros(1), clients, 1, 0.99)


def test_splits_and_lookups_lose_nobody():
    rng = np.random.default_rng(5)
    held = np.array([1000, 0, 50])
    holders, clients = split(held, 200, np.array([0.5, 0.2, 0.3]), rng)
    np.testing.assert_array_equal(holders.sum(axis=1), held)
    assert clients.sum() == 1250
    assert (clients >= holders.sum(axis=0)).all()
    everyone = np.arange(120, dtype=np.uint64) << np.uint64(57)  # 64 alike in their first bits
    everyone |= np.arange(120, dtype=np.uint64)
    keys = rng.choice(everyone[::2], 50)
    held = rng.integers(0, 9, 50)
    expected = [held[keys == key].sum() for key in everyone]
    np.testing.assert_array_equal(lookup(everyone, keys, held), expected)
    assert lookup(keys, keys[:0], held[:0]).sum() == 0


def test_the_largest_are_those_of_a_whole_sort():
    rng = np.random.default_rng(6)
    for number in (1, 7, 50, 60):
        values = rng.integers(0, 9, 50).astype(float)
        expected = np.argsort(-values, kind="stable")[:number]
        np.testing.assert_array_equal(largest(values, number), expected)


def test_values_fit_into_a_report_or_are_refused():
    seeds = np.arange(9, dtype=np.uint64)
    sent = HashOracle(11.0).send(seeds, seeds, seeds < 9, np.random.default_rng(1))
    assert sent.dtype == np.uint16
    assert HashOracle(np.log(2**16 - 1)).values == 2**16
    for epsilon in (np.nextafter(np.log(2**16 - 1), 12), 11.1, 800.0):
        with pytest.raises(ValueError, match=r"^epsilon = .*: needs at most 11.09"):
            HashOracle(epsilon)
    assert HashOracle(800.0, values=2).match == 1


@pytest.mark.parametrize("values", [1, 2**16 + 1, 2.5])
def test_wrong_values(values):
    with pytest.raises(ValueError, match="values"):
        HashOracle(2.0, values)


def test_wrong_counts():
    items = np.eye(3, dtype=np.uint8)
    for counts in ([1, 2], [0.5, 1, 1], [[1, 2, 3]]):
        with pytest.raises(ValueError, match="counts has shape"):
            held_counts(counts, items)
    with pytest.raises(ValueError, match="counts holds -1"):
        held_counts([1, -1, 0], items)
    with pytest.raises(ValueError, match="empty"):
        split(np.array([3]), -1, np.ones(1), np.random.default_rng(1))
    with pytest.raises(ValueError, match="no client"):
        HashOracle(2.0).accept(items, np.zeros(3), 0, 3, 0.05)
