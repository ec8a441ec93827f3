"""`Prot` in every channel: privacy by enumeration, the fast law against clients, closed forms.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import itertools
from collections import Counter
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM, TINY, client_sums

from ldpcash import Prot
from ldpcash.histogram.hashing import ChannelHash
from ldpcash.histogram.prot_channels import ProtChannels
from ldpcash.histogram.symbols import symbol_code

PAIR = np.array([[0, 1], [1, 1]], dtype=np.uint8)


def same_law(first, second):
    """Two lists of outcomes: the p-value of their having one law (rare outcomes taken together)."""
    counts = [Counter(outcomes) for outcomes in (first, second)]
    both = counts[0] + counts[1]
    common = [outcome for outcome in both if both[outcome] >= 20]
    table = np.array(
        [[c[o] for o in common] + [len(x)] for c, x in zip(counts, (first, second), strict=True)]
    )
    table[:, -1] -= table[:, :-1].sum(axis=1)
    return scipy.stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


class Chance:
    """A generator whose words are known: first those of a random symbol, then the coin's."""

    def __init__(self, symbol, tells):
        self.words = [symbol * 0x0101010101010101, 0 if tells else 2**64 - 1]

    def integers(self, low, high, size, dtype):
        return np.full(size, self.words.pop(0), dtype=dtype)


class TestPrivacy:
    @pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0, 4.0])
    @pytest.mark.parametrize("bits", [1, 2, 3])
    def test_a_report_is_epsilon_private_whatever_the_seed(self, epsilon, bits):
        """Every probability, by going through all choices that the client's code makes."""
        code = symbol_code(4, bits, 4.0, 16)
        prot = ProtChannels(code, epsilon, 4, bits)
        channel_of = ChannelHash(4, 4, 1)
        items = np.array(list(itertools.product((0, 1), repeat=4)), dtype=np.uint8)
        everyone = np.concatenate([items, items[:1]])  # the last one holds nothing
        own = np.append(channel_of(items), -1)
        worst = 0.0
        for seed in range(40):
            seeds = np.full(17, seed, dtype=np.uint64)
            law = np.zeros((17, prot.symbols))
            for symbol, tells in itertools.product(range(prot.symbols), (True, False)):
                sent = prot.reports(everyone, own, seeds, Chance(symbol, tells))
                chance = prot.truth if tells else 1 - prot.truth
                law[np.arange(17), sent] += chance / prot.symbols
            np.testing.assert_allclose(law.sum(axis=1), 1)
            worst = max(worst, (law.max(axis=0) / law.min(axis=0)).max())
        assert np.exp(epsilon) * (1 - 1e-12) < worst <= np.exp(epsilon)  # reached, never passed

    def test_the_joint_release_over_all_channels_costs_no_more_than_one(self):
        """What the server sees of all K channels: exact fractions, e^eps = 3, two items and none.

        A seed says a cell in each channel, all alike; the symbol is unmasked in every channel.
        """
        odds = Fraction(3)
        signs = {"a": (0, 1), "b": (1, 1)}  # codewords of length 2
        channel = {"a": 0, "b": 1}

        def law(item):
            seen = Counter()
            for cells in itertools.product(range(4), repeat=2):  # (coordinate, mask) in 2 channels
                for sent in (0, 1):
                    chance = Fraction(1, 2)
                    if item:
                        coordinate, mask = divmod(cells[channel[item]], 2)
                        truth = signs[item][coordinate] ^ mask
                        chance = odds / (1 + odds) if sent == truth else 1 / (1 + odds)
                    seen[tuple(cell ^ sent for cell in cells)] += chance / 16
            return seen

        laws = [law(item) for item in ("a", "b", None)]
        assert len(laws[0]) == 16
        ratios = {p[view] / q[view] for p, q in itertools.permutations(laws, 2) for view in laws[0]}
        assert max(ratios) == odds  # not its square
        # In the other channel, the view is uniform and independent of the view in the own one.
        own = Counter()
        for (first, _), chance in laws[0].items():
            own[first] += chance
        assert all(chance == own[first] / 4 for (first, _), chance in laws[0].items())

    def test_the_coin_never_exceeds_its_bound(self, subtests):
        """t / 2**64 <= lambda, in 60 digits; and below it by a part in 10^11 at most."""
        for epsilon, bits in itertools.product([1e-6, 0.3, 1.0, 4.0, 30.0], [1, 3, 6]):
            prot = ProtChannels(symbol_code(4, bits, 4.0, 512), epsilon, 2, bits)
            with subtests.test(epsilon=epsilon, bits=bits), mp.workdps(60):
                growth = mp.exp(mp.mpf(epsilon))
                share = int(prot._response.threshold) / (
                    mp.mpf(2) ** 64 * (growth - 1) / (growth + 2**bits - 1)
                )
                assert 1 - 1e-11 < share <= 1


class TestLaw:
    @pytest.mark.parametrize("own", [[0, 1], [1, 1]])
    @pytest.mark.parametrize("counts", [[2, 1], [3, 0]])
    def test_sums_of_signs_have_the_clients_law(self, own, counts):
        prot = ProtChannels(TINY, 1.5, 2)
        own, rng = np.array(own), np.random.default_rng(7)
        told = client_sums(prot, PAIR, own, counts, 4, 4000, rng)
        drawn = [prot.draw(PAIR, own, counts, 4, rng) for _ in range(4000)]
        for channel in (0, 1):
            a, b = ([s[channel].tobytes() for s in sums] for sums in (told, drawn))
            assert same_law(a, b) > FALSE_ALARM
        # Both channels together, in one number each: how often the first item's signs were met.
        cells = [0, 3]
        a, b = ([tuple(s[:, cells].sum(axis=1)) for s in sums] for sums in (told, drawn))
        assert same_law(a, b) > FALSE_ALARM

    @pytest.mark.parametrize("bits", [2, 3])
    def test_sums_of_symbols_have_the_clients_law(self, bits):
        code = symbol_code(3, bits, 3.0, 16)
        prot = ProtChannels(code, 2.0, 2, bits)
        items = np.array([[0, 1, 1], [1, 0, 1]], dtype=np.uint8)
        own, counts, rng = np.array([1, 1]), [9, 6], np.random.default_rng(8)
        told = client_sums(prot, items, own, counts, 20, 4000, rng)
        drawn = [prot.draw(items, own, counts, 20, rng) for _ in range(4000)]
        cell = np.arange(prot.blocks) * prot.symbols + prot.codeword_symbols(items)
        for channel, item in itertools.product((0, 1), (0, 1)):
            a, b = ([int(s[channel, cell[item]].sum()) for s in sums] for sums in (told, drawn))
            assert same_law(a, b) > FALSE_ALARM
        assert all((s.sum(axis=1) == 20).all() for s in told + drawn)

    def test_one_channel_of_signs_is_prot(self):
        prot, channels = Prot(TINY, 1.5), ProtChannels(TINY, 1.5, 1)
        rng = np.random.default_rng(9)
        y = prot.mean_reports(np.tile([0, 1], (4000, 1)), 0.75, 4, rng) * np.sqrt(2)
        own = np.zeros(1, dtype=int)
        mine = [
            channels.means(channels.draw(PAIR[:1], own, [3], 4, rng), 4)[0] for _ in range(4000)
        ]
        a, b = ([tuple(np.round(row, 6) + 0.0) for row in rows] for rows in (y, mine))
        assert same_law(a, b) > FALSE_ALARM


class TestMeans:
    @pytest.mark.parametrize("bits", range(1, 7))
    def test_expected_sums_give_the_signal(self, bits):
        """No noise: the truthful spread exactly evenly, and so does everybody else."""
        prot = ProtChannels(symbol_code(20, bits, 6.0), 1.0, 2, bits)
        items = np.random.default_rng(bits).integers(0, 2, (3, 20), dtype=np.uint8)
        frequency, own, clients = np.array([0.2, 0.3, 0.4]), [0, 1, 1], 1000.0
        truthful = prot.truth * frequency * clients
        sums = np.zeros((2, prot.cells))
        sums += ((clients - np.bincount(own, truthful)) / prot.cells)[:, None]
        block = np.arange(prot.blocks) * prot.symbols
        for item, channel in enumerate(own):
            cell = block + prot.codeword_symbols(items)[item]
            sums[channel, cell] += truthful[item] / prot.blocks
        x = np.where(prot.live, 2.0 * prot.code.encode(items) - 1, 0)
        expected = np.stack([0.2 * x[0], 0.3 * x[1] + 0.4 * x[2]])
        np.testing.assert_allclose(prot.means(sums, 1000), expected, atol=1e-12)
        np.testing.assert_array_equal(prot.signs(items), x)
        assert prot.live.sum() == prot.blocks * (prot.symbols - 1)

    @pytest.mark.parametrize("bits", [1, 3])
    @pytest.mark.parametrize("frequency", [0.0, 0.5])
    def test_the_estimate_has_the_variance_it_says(self, bits, frequency):
        prot = ProtChannels(symbol_code(6, bits, 4.0), 1.0, 1, bits)
        item, rng = np.array([[1, 0, 1, 1, 0, 0]], dtype=np.uint8), np.random.default_rng(11)
        own, held = np.zeros(1, dtype=int), [round(400 * frequency)]
        sign = prot.signs(item)[0] / prot.live.sum()
        drawn = [
            prot.means(prot.draw(item, own, held, 400, rng), 400)[0] @ sign for _ in range(4000)
        ]
        variance = float(prot.variance(np.array(frequency), 400))
        assert abs(np.mean(drawn) - frequency) < scipy.stats.norm.isf(FALSE_ALARM) * np.sqrt(
            variance / 4000
        )
        low, high = scipy.stats.chi2.ppf([FALSE_ALARM, 1 - FALSE_ALARM], 3999) / 3999
        assert low * 0.97 < np.var(drawn, ddof=1) / variance < high * 1.03  # nearly normal
        if frequency == 0:
            assert variance == pytest.approx(prot.noise**2 / 400)

    def test_p_values_are_binomial(self):
        prot = ProtChannels(symbol_code(6, 2, 4.0), 1.0, 1, 2)
        matches = np.array([100, 130, 180, 400])
        estimate = (matches / 400 * 4 - 1) / (prot.truth * 3)
        np.testing.assert_allclose(
            prot.p_value(estimate, np.zeros(4), 400), scipy.stats.binom.sf(matches - 1, 400, 0.25)
        )
        assert (
            prot.p_value(estimate[1:3], np.ones(2), 400)
            > prot.p_value(estimate[1:3], np.zeros(2), 400)
        ).all()
        assert prot.p_value(np.array([-9.0]), np.zeros(1), 400) == 1


@pytest.mark.parametrize("epsilon", [0, -1.0, np.nan, "1"])
def test_wrong_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon ="):
        ProtChannels(TINY, epsilon, 2)
