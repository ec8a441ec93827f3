"""The oracle over a public dictionary: its laws, and that nothing better is known.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import itertools
import math

import numpy as np
import pytest
import scipy
from strategies import BITS, COUNTS, FALSE_ALARM, NAMES

from ldpcash.base.arrays import bits_of
from ldpcash.beyond.dictionary import Dictionary


def items_of(many, k=14):
    return bits_of(np.arange(many), k)


@pytest.mark.parametrize(("many", "epsilon", "size"), [(9, 3.0, 1), (7, 1.0, 2), (9, 0.7, 3)])
def test_a_subset_has_the_law_and_the_odds_of_epsilon(many, epsilon, size):
    """Every subset is counted, of a client with an item and of one with none."""
    dictionary = Dictionary(items_of(many, 4), epsilon)
    assert (dictionary.oracle, dictionary.size) == ("subset", size)
    sets = list(itertools.combinations(range(many + 1), size))
    truth = dictionary._truth
    for item, held in ((2, True), (2, False), (many + 1, True)):
        own = item if held and item < many else many
        law = np.array(
            [
                truth * (own in one) / math.comb(many, size - 1)
                + (1 - truth) / math.comb(many + 1, size)
                for one in sets
            ]
        )
        assert law.sum() == pytest.approx(1)
        assert law.max() / law.min() == pytest.approx(np.exp(epsilon))
        sent = dictionary.reports(
            np.tile(bits_of(item, 4), (40_000, 1)),
            np.full(40_000, held),
            np.random.default_rng(1),
        )
        number = {one: place for place, one in enumerate(sets)}
        seen = np.bincount(
            [number[tuple(row)] for row in np.sort(sent.values, axis=1).tolist()],
            minlength=len(sets),
        )
        assert scipy.stats.chisquare(seen, 40_000 * law).pvalue > FALSE_ALARM / 3


@pytest.mark.parametrize("how", ["law", "clients"])
@pytest.mark.parametrize(("oracle", "epsilon"), [("hashing", 2.0), ("subset", 1.2), ("subset", 4)])
def test_estimates_are_unbiased_and_have_the_variance_of_the_formula(how, oracle, epsilon):
    """Items 0 and 1 are held, 2 is not, and an item outside of the dictionary is."""
    dictionary = Dictionary(items_of(10, 5), epsilon, oracle)
    items, counts = bits_of([0, 1, 20], 5), np.array([80, 50, 30])
    rng, trials, clients = np.random.default_rng(2), 1500, 200
    who = np.append(np.repeat(np.arange(3), counts), np.zeros(40, int))
    seen = []
    dictionary._accept = lambda counts, clients, packing: seen.append(counts[:3])
    for _ in range(trials):
        if how == "law":
            dictionary.draw(items, counts, rng, 40)
        else:
            dictionary.search(dictionary.reports(items[who], np.arange(200) < 160, rng))
    if oracle == "hashing":
        p, q = dictionary._hashing.match, 1 / dictionary._hashing.values
    else:
        q, size, truth = dictionary._other, dictionary.size, dictionary._truth
        p = truth + (1 - truth) * size / 11
    found, held = (np.array(seen) / clients - q) / (p - q), np.array([80, 50, 0])
    variance = (held * p * (1 - p) + (clients - held) * q * (1 - q)) / (clients * (p - q)) ** 2
    assert variance[2] == pytest.approx(dictionary.noise**2 / clients)
    z = scipy.stats.norm.isf(FALSE_ALARM / 20)
    assert (abs(found.mean(axis=0) - held / clients) < z * np.sqrt(variance / trials)).all()
    assert (abs(found.var(axis=0) / variance - 1) < z * np.sqrt(2.2 / trials)).all()


def test_the_better_oracle_is_taken_and_no_subset_is_much_better():
    """Noise of a subset of any size, from its probabilities: Ye and Barg (2018)."""

    def noise(symbols, size, epsilon):
        p = size * np.exp(epsilon) / (size * np.exp(epsilon) + symbols - size)
        q = (p * (size - 1) + (1 - p) * size) / (symbols - 1)
        return np.sqrt(q * (1 - q)) / (p - q)

    for many, epsilon in itertools.product((20, 100, 1216), (0.5, 1.0, 2.0, 4.0, 5.0, 6.0, 8.0)):
        dictionary = Dictionary(items_of(many), epsilon)
        least = min(noise(many + 1, size, epsilon) for size in range(1, many + 1))
        assert least <= dictionary.noise * (1 + 1e-12)
        # Local hashing has a whole number of values, which costs a little at small epsilon.
        assert dictionary.noise < 1.04 * least
        if dictionary.oracle == "subset":
            assert dictionary.noise == pytest.approx(noise(many + 1, dictionary.size, epsilon))
    assert Dictionary(items_of(1216), 2.0).oracle == "hashing"
    assert Dictionary(items_of(1216), 8.0).size == 1


@pytest.mark.parametrize("how", ["law", "clients"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_frequent_items_are_found(how, epsilon):
    others = bits_of(np.arange(300) * 7 + 1, 20)
    dictionary = Dictionary(np.vstack([others, BITS]), epsilon)
    rng = np.random.default_rng(3)
    if how == "law":
        lines = dictionary.draw(BITS, COUNTS, rng, 970, NAMES)
    else:
        who = np.append(np.repeat(np.arange(4), COUNTS), np.zeros(970, int))
        sent = dictionary.reports(BITS[who], np.arange(20_000) < COUNTS.sum(), rng)
        lines = dictionary.search(sent, NAMES)
    assert [line.item for line in lines][:3] == ["ANNA", "BOB", "CAY"]
    for line, count in zip(lines, COUNTS, strict=False):
        error = 6 * dictionary.noise / np.sqrt(20_000)
        assert line.frequency == pytest.approx(count / 20_000, abs=max(error, 0.03))
        assert line.low < line.frequency < line.high


@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_noise_alone_is_seldom_an_item(epsilon):
    """All clients hold something that is not in the dictionary, or nothing."""
    dictionary, rng = Dictionary(items_of(100, 8), epsilon), np.random.default_rng(4)
    assert dictionary.oracle == ("hashing" if epsilon == 1 else "subset")
    drawn = [dictionary.draw(bits_of([200], 8), [1000], rng, 1000) for _ in range(600)]
    false = sum(map(bool, drawn))
    assert false <= scipy.stats.binom.isf(FALSE_ALARM, 600, 0.05)
    assert false > 0  # the level is nearly reached, and so none at all would be too few


def test_an_item_of_the_smallest_frequency_is_accepted_about_half_the_time():
    dictionary, rng = Dictionary(items_of(100, 8), 2.0), np.random.default_rng(5)
    held = round(dictionary.smallest(50_000, found=5) * 50_000)
    items, counts = items_of(6, 8), np.array([5000] * 5 + [held])
    found = 0
    for _ in range(300):
        lines = dictionary.draw(items, counts, rng, 50_000 - counts.sum())
        found += any((line.item == items[5]).all() for line in lines)
    assert abs(found / 300 - 0.5) < 0.2  # 7 standard errors; the rule is a little sharper


def test_a_dictionary_is_one_of_different_items():
    with pytest.raises(ValueError, match="bits has an item twice"):
        Dictionary([[0, 1], [1, 1], [0, 1]], 2.0)
    for shape in ((0, 3), (3,), (3, 0)):
        with pytest.raises(ValueError, match="bits has shape"):
            Dictionary(np.zeros(shape), 2.0)
    assert Dictionary([[1, 0]], 2.0).size == 1


def test_no_client():
    for epsilon in (0.5, 6.0):
        dictionary = Dictionary(items_of(100, 8), epsilon)
        with pytest.raises(ValueError, match="no client"):
            dictionary.draw(items_of(1, 8), [0], np.random.default_rng(1))


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"oracle": "counting"}, {"fdr": 7}])
def test_wrong_arguments(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Dictionary(**{"bits": items_of(3), "epsilon": 1.0, **wrong})
