"""`Prot`: clients and the fast law against enumeration and closed forms.

Every statistical test has a false-alarm rate of at most 1e-6; that of the operating system's
randomness is the only one without a fixed seed.
"""

import math
from collections import Counter
from itertools import product

import mpmath as mp
import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM, ITEM, PAPER, TINY, client_means

from ldpcash import PolarCode, SCLDecoder, keep_threshold
from ldpcash.protocols.prot import Prot

X0 = 2 * int(PAPER.encode(ITEM)[0]) - 1  # sign of the signal's first entry


def exact_law(prot, item, held, clients):
    """Probability of each mean, by going through everything that the clients can send."""
    n = prot.code.n
    p = np.exp(prot.epsilon) / (np.exp(prot.epsilon) + 1)
    signs = 2 * prot.code.encode(item).astype(int) - 1
    law = Counter()
    outcomes = list(product(range(n), (1, -1)))
    for sent in product(outcomes, repeat=clients):
        probability, total = 1.0, np.zeros(n, dtype=int)
        for client, (coordinate, sign) in enumerate(sent):
            truth = sign == (signs[coordinate] if client < held else 1)
            chance = p if truth else 1 - p
            if client >= held and prot.empty == "uniform":
                chance = 0.5
            probability *= chance / n
            total[coordinate] += sign
        law[tuple(total)] += probability
    return law


class TestMeans:
    @pytest.mark.parametrize("empty", ["uniform", "positive"])
    @pytest.mark.parametrize("item", [[0, 1], [1, 0]])
    @pytest.mark.parametrize("held", [0, 2, 3, 4])
    @pytest.mark.parametrize("way", ["clients", "law"])
    def test_the_mean_has_the_enumerated_law(self, empty, item, held, way):
        trials = 20_000
        prot = Prot(TINY, 1.2, empty=empty)
        rng = np.random.default_rng(held)
        if way == "clients":
            y = client_means(prot, np.array(item), held, 4, trials, rng)
        else:
            y = prot.mean_reports(np.tile(item, (trials, 1)), held / 4, 4, rng)
        seen = Counter(map(tuple, np.rint(y * 4 / prot.amplitude).astype(int).tolist()))
        law = exact_law(prot, item, held, 4)
        assert set(seen) <= set(law)
        expected = np.array([law[total] * trials for total in law])
        counts = np.array([seen[total] for total in law])
        rare = expected < 8  # chi-square needs counts; rare outcomes go together
        expected = np.append(expected[~rare], expected[rare].sum() + 1e-9)
        counts = np.append(counts[~rare], counts[rare].sum())
        statistic = ((counts - expected) ** 2 / expected).sum()
        assert scipy.stats.chi2.sf(statistic, len(counts) - 1) > FALSE_ALARM

    @pytest.mark.parametrize("empty", ["uniform", "positive"])
    def test_clients_and_law_agree_at_the_paper_s_size(self, empty):
        """Means and variances of all coordinates, at 64 symbols and 300 clients."""
        prot = Prot(PAPER, 1.0, empty=empty)
        rng = np.random.default_rng(1)
        slow = client_means(prot, ITEM, 180, 300, 400, rng)
        fast = prot.mean_reports(np.tile(ITEM, (20_000, 1)), 0.6, 300, rng)
        limit = scipy.stats.norm.isf(FALSE_ALARM / 2 / 128)
        for power in (1, 2):
            a, b = slow**power, fast**power
            error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
            assert (abs(a.mean(axis=0) - b.mean(axis=0)) < limit * error).all()

    def test_mean_and_variance_in_closed_form(self):
        prot = Prot(PAPER, 1.0)
        trials = 40_000
        rng = np.random.default_rng(3)
        y = prot.mean_reports(np.tile(ITEM, (trials, 1)), 0.6, 1000, rng)
        x = (2.0 * PAPER.encode(ITEM) - 1) / 8
        c = (np.e + 1) / (np.e - 1)
        variance = (c**2 - 0.6 * x**2) / 1000
        limit = scipy.stats.norm.isf(FALSE_ALARM / 2 / 64)
        assert (abs(y.mean(axis=0) - 0.6 * x) < limit * np.sqrt(variance / trials)).all()
        # The sample variance of a nearly Gaussian coordinate is within sqrt(2 / trials).
        assert (abs(y.var(axis=0) / variance - 1) < 1.1 * limit * np.sqrt(2 / trials)).all()

    def test_a_report_has_one_entry(self):
        prot = Prot(PAPER, 1.0)
        holds = np.arange(500) % 2 == 0
        sent = prot.reports(np.tile(ITEM, (500, 1)), holds, np.random.default_rng(0))
        assert ((sent != 0).sum(axis=1) == 1).all()
        np.testing.assert_allclose(abs(sent).max(axis=1), 8 * (np.e + 1) / (np.e - 1))

    def test_rounding_sends_zero_to_plus(self):
        """y_j >= 0 is rounded to + (Section IV), which is bit 1."""
        prot = Prot(PolarCode(4, [3]), 1.0, frequency_from="rounded")
        bits, frequency = prot.estimate(np.zeros(4))
        assert bits.tolist() == [1]
        assert frequency == 1.0

    def test_switches(self):
        y = np.array([-3.0, 1.0, 1.0, 0.5])
        code = PolarCode(4, [3])
        hard = Prot(code, 1.0).estimate(y)
        assert hard.bits.tolist() == [1]
        assert hard.frequency == pytest.approx(-0.25)  # <x, y> of the unrounded mean
        assert Prot(code, 1.0, frequency_from="rounded").estimate(y).frequency == 0.5
        for decoder in (None, SCLDecoder(code, 2)):
            soft = Prot(code, 1.0, decoder, decision="soft").estimate(y)
            assert soft.bits.tolist() == [0]
            assert soft.frequency == pytest.approx(0.25)

    @pytest.mark.parametrize(
        ("switch", "value"), [("empty", "none"), ("decision", "firm"), ("frequency_from", "y")]
    )
    def test_bad_switches(self, switch, value):
        with pytest.raises(ValueError, match=f"{switch} = '{value}'"):
            Prot(PAPER, 1.0, **{switch: value})


class TestReports:
    def test_from_the_operating_system(self):
        """Kept signs are binomial: a real client's coin is the right one."""
        prot = Prot(PAPER, 1.0)
        sent = prot.reports(np.tile(ITEM, (20_000, 1)), np.ones(20_000, dtype=bool))
        kept = int((sent @ (2.0 * PAPER.encode(ITEM) - 1) > 0).sum())
        p = math.e / (math.e + 1)
        assert scipy.stats.binomtest(kept, 20_000, p).pvalue > FALSE_ALARM

    @pytest.mark.parametrize("holds", list(product([True, False], repeat=2)))
    def test_the_coin_is_a_comparison(self, holds, monkeypatch):
        """The largest word that keeps the sign, and the smallest that flips it."""
        prot = Prot(TINY, 1.0)
        with mp.workdps(90):
            threshold = int(mp.floor(mp.mpf(2) ** 64 / (1 + mp.exp(-1))))
        words = {32: [0, 1], 64: [threshold - 1, threshold], 8: [2, 3]}
        kinds = {8: np.uint8, 32: np.uint32, 64: np.uint64}
        monkeypatch.setattr(
            "ldpcash.protocols.prot.random_words",
            lambda shape, width, rng: np.array(words[width], dtype=kinds[width]),
        )
        sent = prot.reports([[0, 1], [0, 1]], list(holds)) / prot.amplitude  # codeword 1 1
        expected = [[1.0, 0.0], [0.0, -1.0]]  # kept and flipped; or even and odd
        assert sent.tolist() == expected

    @pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 8.0, 50.0])
    def test_the_coin_is_the_largest_that_epsilon_allows(self, epsilon):
        """Words below the threshold keep the sign, and no others."""

        class Words:
            """One word for both coordinates, which are 0, and one for each coin."""

            def integers(self, low, high, count, dtype):
                threshold = keep_threshold(epsilon)
                return np.array([0] if count == 1 else [threshold - 1, threshold], dtype=dtype)

        prot = Prot(PAPER, epsilon, empty="positive")
        sent = prot.reports([ITEM, ITEM], [True, True], Words())
        assert np.sign(sent[:, 0]).tolist() == [X0, -X0]


def test_any_number_of_clients_of_any_type(subtests):
    """Counts add up: with soft signs, the sum of all entries is that of N reports."""
    prot = Prot(PAPER, 1.0, empty="positive")
    numbers = [np.int8(100), np.uint16(20_000), 1e6, 5 * 10**9]
    for clients, frequency in product(numbers, [0, 0.5, 1]):
        with subtests.test(clients=clients, frequency=frequency):
            y = prot.mean_reports([ITEM], frequency, clients, np.random.default_rng(1))
            counts = y / prot.amplitude * float(clients)
            assert counts == pytest.approx(np.rint(counts), abs=1e-3)
            assert abs(counts).sum() <= float(clients) * (1 + 1e-9)
