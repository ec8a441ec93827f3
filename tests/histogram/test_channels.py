"""Channels: privacy by enumeration, the fast law against clients, means against closed forms.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import itertools
from collections import Counter
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from ldpcash import PolarCode, Prot, gaussian_sigma
from ldpcash.beyond.audit import joint_odds
from ldpcash.histogram.cash_channels import CashChannels
from ldpcash.histogram.hashing import ChannelHash, groups, public_number_in, public_numbers
from ldpcash.histogram.prot_channels import ProtChannels
from ldpcash.histogram.symbols import best_symbol_width, symbol_code
from ldpcash.privacy.grid import grid_delta

FALSE_ALARM = 1e-6
TINY = PolarCode(2, [0, 1])
SIMPLEX = PolarCode(16, [7, 11, 13, 14])
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
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


class TestHash:
    def test_is_pairwise_independent(self):
        items = [[0, 0, 0, 0, 0], [1, 0, 1, 1, 0]]
        pairs = [tuple(ChannelHash(5, 4, seed)(items)) for seed in range(8000)]
        counts = Counter(pairs)
        assert len(counts) == 16
        assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM

    def test_is_the_affine_map_of_its_seed(self):
        channel = ChannelHash(70, 16, 3)  # more than one word
        rng = np.random.default_rng(3)
        matrix, shift = rng.integers(0, 2, (4, 70), dtype=np.uint8), rng.integers(0, 2, 4, np.uint8)
        items = np.random.default_rng(1).integers(0, 2, (50, 70))
        bits = (items @ matrix.T + shift) % 2
        np.testing.assert_array_equal(channel(items), bits @ [8, 4, 2, 1])

    def test_one_channel_has_all(self):
        assert ChannelHash(3, 1, 5)([[0, 1, 1], [1, 1, 1]]).tolist() == [0, 0]

    @pytest.mark.parametrize("channels", [0, 3, 2**17, 1.5])
    def test_wrong_channels(self, channels):
        with pytest.raises(ValueError, match="count ="):
            ChannelHash(3, channels, 1)


class TestPublicRandomness:
    def test_a_client_needs_only_its_own_lane(self):
        seeds = np.random.default_rng(1).integers(0, 2**64, 100, dtype=np.uint64)
        channel = np.random.default_rng(2).integers(0, 37, 100)
        table = public_numbers(seeds, 37)
        assert table.shape == (100, 37)
        np.testing.assert_array_equal(
            table[np.arange(100), channel], public_number_in(seeds, channel)
        )

    def test_lanes_of_two_channels_are_uniform_together(self):
        seeds = np.random.default_rng(3).integers(0, 2**64, 200_000, dtype=np.uint64)
        table = public_numbers(seeds, 8) & 15
        for a, b in itertools.combinations(range(8), 2):
            counts = np.bincount(16 * table[:, a].astype(int) + table[:, b], minlength=256)
            assert stats.chisquare(counts).pvalue > FALSE_ALARM / 28

    def test_groups_are_uniform_and_independent_of_lanes(self):
        seeds = np.random.default_rng(4).integers(0, 2**64, 100_000, dtype=np.uint64)
        joint = 16 * groups(seeds, 4) + (public_numbers(seeds, 1)[:, 0] & 15)
        assert stats.chisquare(np.bincount(joint, minlength=64)).pvalue > FALSE_ALARM


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

    @pytest.mark.parametrize("bits", [1, 2])
    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    def test_so_it_is_for_the_channels_of_the_library(self, bits, epsilon):
        prot = ProtChannels(symbol_code(3, bits, 4.0, 8), epsilon, 2, bits)
        assert joint_odds(prot) == pytest.approx(np.exp(epsilon), rel=1e-12)

    @pytest.mark.parametrize("info", [[1, 2, 3], [1, 2], [0]])
    def test_cash_covers_the_largest_distance(self, info):
        code = PolarCode(4, info)
        words = (2.0 * code.codebook() - 1) / 2
        signals = [np.zeros(12)]  # three channels; the first client holds nothing
        for channel, word in itertools.product(range(3), words):
            signals.append(np.zeros(12))
            signals[-1][4 * channel : 4 * channel + 4] = word
        largest = max(np.linalg.norm(a - b) for a, b in itertools.combinations(signals, 2))
        assert largest == pytest.approx(max(code.sensitivity, np.sqrt(2)))
        assert CashChannels(code, 1.0, 4, 1e-5).noise == pytest.approx(
            gaussian_sigma(1.0, 1e-5, largest)
        )

    def test_cash_keeps_plain_numbers(self):
        cash = CashChannels(TINY, np.float32(1), 2, np.float32(0.25))
        assert (type(cash.epsilon), type(cash.delta)) == (float, float)
        with pytest.raises(ValueError, match="delta = None: needs a"):
            CashChannels(TINY, 1.0, 2, None)

    def test_cash_with_one_channel_is_the_paper_s(self):
        assert CashChannels(PolarCode(64, [0]), 1.0, 1).noise == gaussian_sigma(1.0, 1e-4, 1.0)

    def test_a_code_too_large_to_enumerate_counts_with_its_bound(self):
        code = PolarCode(64, range(20, 50))
        noise = gaussian_sigma(1.0, 1e-4, code.sensitivity)
        assert CashChannels(code, 1.0, 2).noise == noise > gaussian_sigma(1.0, 1e-4, 1.9)

    @pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 4.0, 30.0])
    @pytest.mark.parametrize("bits", [1, 3, 6])
    def test_the_coin_never_exceeds_its_bound(self, epsilon, bits):
        """t / 2**64 <= lambda, in 60 digits; and below it by a part in 10^11 at most."""
        prot = ProtChannels(symbol_code(4, bits, 4.0, 512), epsilon, 2, bits)
        with mp.workdps(60):
            growth = mp.exp(mp.mpf(epsilon))
            share = int(prot._response.threshold) / (
                mp.mpf(2) ** 64 * (growth - 1) / (growth + 2**bits - 1)
            )
            assert 1 - 1e-11 < share <= 1

    def test_the_grid_counts_words_in_different_channels(self):
        """Where words are light, no pair of inputs is farther apart: one level in 2 n places."""
        cash = CashChannels(PolarCode(16, [1, 2]), 1.0, 4)
        two_channels = grid_delta(1.0, cash.grid.scale, cash.grid.level, 2 * 16)
        assert two_channels <= cash.grid.delta(1.0) <= cash.delta

    @pytest.mark.parametrize("channels", [1, 4])
    def test_cash_reports_lie_on_a_grid_that_keeps_the_promise(self, channels):
        """Also for words in different channels: a difference of one level in 2 n coordinates."""
        cash = CashChannels(SIMPLEX, 1.0, channels)
        grid, n = cash.grid, SIMPLEX.n
        apart = grid_delta(1.0, grid.scale, grid.level, n * (2 if channels > 1 else 1))
        within = grid_delta(1.0, grid.scale, 2 * grid.level, n // 2)
        assert max(apart, within) <= cash.delta
        items = np.eye(4, SIMPLEX.k, dtype=np.uint8)
        own = np.array([0, channels - 1, -1, 0])
        for rng in (None, np.random.default_rng(1)):
            sent = cash.reports(items, own, np.zeros(4, np.uint64), rng) / grid.step
            np.testing.assert_array_equal(sent, np.rint(sent))


def client_sums(kind, items, own, counts, clients, trials, rng):
    """Sums of client-by-client reports of many collections: a list of arrays."""
    who = np.repeat(np.arange(len(counts)), counts)
    bits = np.zeros((clients, items.shape[1]), dtype=np.uint8)
    bits[: len(who)] = items[who]
    channel = np.full(clients, -1)
    channel[: len(who)] = own[who]
    found = []
    for _ in range(trials):
        seeds = rng.integers(0, 2**64, clients, dtype=np.uint64)
        sums = kind.empty()
        kind.add(sums, seeds, kind.reports(bits, channel, seeds, rng))
        found.append(sums)
    return found


class TestLaw:
    @pytest.mark.parametrize("own", [[0, 1], [1, 1]])
    @pytest.mark.parametrize("counts", [[2, 1], [3, 0]])
    def test_prot_s_sums_have_the_clients_law(self, own, counts):
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
    def test_symbols_have_the_clients_law(self, bits):
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

    def test_cash_s_sums_have_the_clients_law(self):
        cash = CashChannels(PolarCode.construct(8, 3), 1.0, 2)
        items = np.array([[0, 1, 1], [1, 0, 1]], dtype=np.uint8)
        own, counts, rng = np.array([1, 1]), np.array([5, 3]), np.random.default_rng(10)
        expected = np.zeros((2, 8))
        expected[1] = counts @ (2.0 * cash.code.encode(items) - 1) / np.sqrt(8)
        told = np.array(client_sums(cash, items, own, counts, 10, 1000, rng))
        drawn = np.array([cash.draw(items, own, counts, 10, rng) for _ in range(1000)])
        for sums in (told, drawn):
            residual = (sums - expected) / (cash.noise * np.sqrt(10))
            assert stats.kstest(residual.ravel(), "norm").pvalue > FALSE_ALARM
            means = residual.mean(axis=0) * np.sqrt(1000)
            assert np.abs(means).max() < stats.norm.isf(FALSE_ALARM / 32)


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
        assert abs(np.mean(drawn) - frequency) < stats.norm.isf(FALSE_ALARM) * np.sqrt(
            variance / 4000
        )
        low, high = stats.chi2.ppf([FALSE_ALARM, 1 - FALSE_ALARM], 3999) / 3999
        assert low * 0.97 < np.var(drawn, ddof=1) / variance < high * 1.03  # nearly normal
        if frequency == 0:
            assert variance == pytest.approx(prot.noise**2 / 400)

    def test_p_values_are_binomial_and_normal(self):
        prot = ProtChannels(symbol_code(6, 2, 4.0), 1.0, 1, 2)
        matches = np.array([100, 130, 180, 400])
        estimate = (matches / 400 * 4 - 1) / (prot.truth * 3)
        np.testing.assert_allclose(
            prot.p_value(estimate, np.zeros(4), 400), stats.binom.sf(matches - 1, 400, 0.25)
        )
        assert (
            prot.p_value(estimate[1:3], np.ones(2), 400)
            > prot.p_value(estimate[1:3], np.zeros(2), 400)
        ).all()
        assert prot.p_value(np.array([-9.0]), np.zeros(1), 400) == 1
        cash = CashChannels(TINY, 1.0, 2)
        z = np.array([-1.0, 0.0, 8.0])
        np.testing.assert_allclose(
            cash.p_value(z * cash.noise / 20, np.zeros(3), 400), stats.norm.sf(z)
        )
        np.testing.assert_allclose(cash.variance(np.zeros(2), 400), cash.noise**2 / 400)


class TestSymbols:
    def test_bits_are_those_of_least_noise(self):
        for epsilon in (0.2, 1.0, 1.7, 3.0, 5.0):
            noise = [ProtChannels(symbol_code(8, b, 5.0), epsilon, 1, b).noise for b in range(1, 7)]
            assert best_symbol_width(epsilon) == 1 + int(np.argmin(noise))

    @pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
    def test_noise_is_close_to_optimal_local_hashing(self, epsilon):
        b = best_symbol_width(epsilon)
        prot = ProtChannels(symbol_code(8, b, 5.0), epsilon, 1, b)
        olh = 2 * np.exp(epsilon / 2) / np.expm1(epsilon)  # Wang et al. 2017: 4 e^eps/(e^eps - 1)^2
        assert olh * (1 - 1e-12) <= prot.noise < 1.01 * olh

    @pytest.mark.parametrize("bits", range(2, 7))
    def test_a_block_is_a_symbol_in_the_hadamard_code(self, bits):
        code = symbol_code(16, bits, 6.0)
        prot = ProtChannels(code, 1.0, 1, bits)
        items = np.random.default_rng(1).integers(0, 2, (20, 16), dtype=np.uint8)
        words = code.encode(items).reshape(20, *prot._layout._shape)
        symbols = prot.codeword_symbols(items).reshape(
            20, prot._layout._shape[0], prot._layout._shape[2]
        )
        for c in range(2**bits):
            total = np.bitwise_count(symbols & (2**bits - 1 - c)) % 2
            np.testing.assert_array_equal(words[:, :, c], total)

    @pytest.mark.parametrize("bits", range(1, 7))
    def test_lengths_by_rule(self, bits):
        """One information bit in four allowed indices at most, if blocks and codes are so long."""
        lengths = [symbol_code(k, bits, 8.0).n for k in (1, 4, 7, 8, 40, 64, 128, 256)]
        assert lengths == sorted(lengths)
        assert lengths[-1] <= 4096
        width, place = (1, 0) if bits == 1 else (2**bits, {2: 0, 3: 1}.get(bits, 3))
        for k, n in zip((7, 8, 40, 64), lengths[2:], strict=False):
            assert n == width * 2 ** int(np.ceil(np.log2(4 * k / bits))) >= width << place
        assert ProtChannels(symbol_code(1, bits, 8.0), 1.0, 2, bits).code.k == 1

    @pytest.mark.parametrize(
        "wrong",
        [{"k": 0}, {"k": 2.5}, {"width": 0}, {"strength": 0.0}, {"strength": np.inf}, {"n": 16.5}],
    )
    def test_wrong_arguments_of_a_code(self, wrong):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))} = "):
            symbol_code(**{"k": 8, "width": 2, "strength": 8.0, **wrong})

    def test_whole_numbers_of_any_kind(self):
        assert symbol_code(8.0, 2.0, 8.0, 64.0) == symbol_code(8, 2, 8.0, 64)

    def test_an_epsilon_beyond_all_exponents(self):
        for bits in (1, 6):
            large, larger = (
                ProtChannels(symbol_code(8, bits, 8.0), epsilon, 2, bits).truth
                for epsilon in (100.0, 800.0)
            )
            assert 1 - 1e-14 < large == larger < 1

    def test_codes_that_do_not_fit(self):
        with pytest.raises(ValueError, match="not of 2-bit symbols"):
            ProtChannels(PolarCode.construct(64, 8), 1.0, 2, width=2)
        with pytest.raises(ValueError, match="need n >= 128"):
            ProtChannels(PolarCode.construct(64, 8), 1.0, 2, width=4)
        with pytest.raises(ValueError, match="n = 16: a code of 2-bit symbols has 8 < k = 9"):
            symbol_code(9, 2, 5.0, 16)
        with pytest.raises(ValueError, match="width = 7"):
            symbol_code(9, 7, 5.0)

    @pytest.mark.parametrize("epsilon", [0, -1.0, np.nan, "1"])
    def test_wrong_epsilon(self, epsilon):
        with pytest.raises(ValueError, match="epsilon ="):
            ProtChannels(TINY, epsilon, 2)
