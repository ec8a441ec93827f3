"""Both protocols: clients against the fast law, both against enumeration and closed forms.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from ldpcash import MLDecoder, PolarCode, SCLDecoder, gaussian_sigma, keep_threshold
from ldpcash.protocols.cash import Cash
from ldpcash.protocols.laws import fair_heads, holders, spread_evenly
from ldpcash.protocols.prot import Prot
from ldpcash.protocols.protocol import ReportSum

FALSE_ALARM = 1e-6
PAPER = PolarCode.construct(64, 8)
ITEM = np.array([1, 0, 1, 1, 0, 0, 1, 0], dtype=np.uint8)
X0 = 2 * int(PAPER.encode(ITEM)[0]) - 1  # sign of the signal's first entry


def collect(protocol, item, held, clients, trials, rng):
    """Means of client-by-client reports: ``(trials, n)``."""
    holds = np.tile(np.arange(clients) < held, trials)
    sent = protocol.reports(np.tile(item, (clients * trials, 1)), holds, rng)
    return sent.reshape(trials, clients, -1).mean(axis=1)


class TestCash:
    def test_noise_follows_from_the_code_s_own_sensitivity(self):
        assert Cash(PAPER, 1.0).sigma == gaussian_sigma(1.0, 1e-4, 2.0)
        lighter = PolarCode(64, PAPER.info[:-1])
        assert Cash(lighter, 1.0, 1e-6).sigma == gaussian_sigma(1.0, 1e-6, np.sqrt(3))

    @pytest.mark.parametrize("n", [16, 64, 256])
    @pytest.mark.parametrize("method", ["pw", "ga", "bhattacharyya", "rm"])
    def test_an_empty_client_never_dominates(self, n, method):
        """It is at distance 1 of every signal; two signals are at least sqrt(2) apart somewhere."""
        for k in range(2, 12):
            code = PolarCode.construct(n, k, method)
            for subcode in (code, PolarCode(n, code.info[:-1])):
                if subcode.codebook().any(axis=0).all():  # every position is used
                    assert subcode.sensitivity >= np.sqrt(2)

    def test_but_where_it_does_it_counts(self):
        feeble = PolarCode(64, [0])  # one codeword, of weight 1
        assert feeble.sensitivity == 0.25
        assert Cash(feeble, 1.0).sigma == gaussian_sigma(1.0, 1e-4, 1.0)

    @pytest.mark.parametrize("way", ["clients", "law"])
    def test_the_mean_is_gaussian_with_the_right_mean_and_variance(self, way):
        rng = np.random.default_rng(5)
        cash = Cash(PAPER, 2.0)
        if way == "clients":
            y = collect(cash, ITEM, 12, 20, 2000, rng)
        else:
            y = cash.mean_reports(np.tile(ITEM, (2000, 1)), 0.6, 20, rng)
        x = (2.0 * PAPER.encode(ITEM) - 1) / 8
        residual = (y - 0.6 * x) * np.sqrt(20) / cash.sigma
        assert stats.kstest(residual.ravel(), "norm").pvalue > FALSE_ALARM
        # Coordinates are independent: so is every combination of them, normalized.
        mixed = residual @ stats.ortho_group.rvs(64, random_state=1)
        assert stats.kstest(mixed.ravel(), "norm").pvalue > FALSE_ALARM
        # Along the signal, where a wrong number of holders would show, the mean is 0.
        along = residual @ x
        assert abs(along.mean()) * np.sqrt(2000) < stats.norm.isf(FALSE_ALARM / 2)

    def test_estimate_follows_algorithm_1(self):
        cash = Cash(PAPER, 2.0)
        y = cash.mean_reports(np.tile(ITEM, (7, 1)), 0.7, 1000, np.random.default_rng(2))
        bits, frequency = cash.estimate(y)
        np.testing.assert_array_equal(bits, SCLDecoder(PAPER, 8).decode(-y))
        x = (2.0 * PAPER.encode(bits) - 1) / 8
        np.testing.assert_allclose(frequency, (x * y).sum(axis=1), rtol=1e-12)

    def test_default_and_given_decoder(self):
        assert Cash(PAPER, 1.0).decoder.list_size == 8
        decoder = MLDecoder(PAPER)
        assert Cash(PAPER, 1.0, decoder=decoder).decoder is decoder


def exact_law(prot, item, held, clients):
    """Probability of each mean, by going through everything that the clients can send."""
    n = prot.code.n
    p = np.exp(prot.epsilon) / (np.exp(prot.epsilon) + 1)
    signs = 2 * prot.code.encode(item).astype(int) - 1
    law = Counter()
    outcomes = list(itertools.product(range(n), (1, -1)))
    for sent in itertools.product(outcomes, repeat=clients):
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


class TestProt:
    @pytest.mark.parametrize("empty", ["uniform", "positive"])
    @pytest.mark.parametrize("item", [[0, 1], [1, 0]])
    @pytest.mark.parametrize("held", [0, 2, 3, 4])
    @pytest.mark.parametrize("way", ["clients", "law"])
    def test_the_mean_has_the_enumerated_law(self, empty, item, held, way):
        trials = 20_000
        prot = Prot(PolarCode(2, [0, 1]), 1.2, empty=empty)
        rng = np.random.default_rng(held)
        if way == "clients":
            y = collect(prot, np.array(item), held, 4, trials, rng)
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
        assert stats.chi2.sf(statistic, len(counts) - 1) > FALSE_ALARM

    @pytest.mark.parametrize("empty", ["uniform", "positive"])
    def test_clients_and_law_agree_at_the_paper_s_size(self, empty):
        """Means and variances of all coordinates, at 64 symbols and 300 clients."""
        prot = Prot(PAPER, 1.0, empty=empty)
        rng = np.random.default_rng(1)
        slow = collect(prot, ITEM, 180, 300, 400, rng)
        fast = prot.mean_reports(np.tile(ITEM, (20_000, 1)), 0.6, 300, rng)
        limit = stats.norm.isf(FALSE_ALARM / 2 / 128)
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
        limit = stats.norm.isf(FALSE_ALARM / 2 / 64)
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


BOTH = [Cash(PAPER, 8.0), Prot(PAPER, 8.0), Prot(PAPER, 8.0, SCLDecoder(PAPER), decision="soft")]


@pytest.mark.parametrize("protocol", BOTH, ids=["cash", "prot", "prot soft"])
class TestBoth:
    def test_finds_the_item_and_its_frequency(self, protocol):
        rng = np.random.default_rng(4)
        items = rng.integers(0, 2, (50, 8), dtype=np.uint8)
        y = protocol.mean_reports(items, 0.7, 100_000, rng)
        assert y.shape == (50, 64)
        bits, frequency = protocol.estimate(y)
        np.testing.assert_array_equal(bits, items)
        np.testing.assert_allclose(frequency, 0.7, atol=0.05)

    def test_leading_shapes(self, protocol):
        bits, frequency = protocol.estimate(np.ones((2, 3, 64)))
        assert bits.shape == (2, 3, 8)
        assert frequency.shape == (2, 3)
        assert protocol.estimate(np.ones(64)).frequency.shape == ()

    def test_same_seed_same_draw(self, protocol):
        draws = [
            protocol.mean_reports(np.tile(ITEM, (3, 1)), 0.5, 10, np.random.default_rng(1))
            for _ in range(2)
        ]
        np.testing.assert_array_equal(*draws)

    def test_mergeable(self, protocol):
        sent = protocol.reports(
            np.tile(ITEM, (90, 1)), np.arange(90) < 60, np.random.default_rng(1)
        )
        parts = [ReportSum(64) for _ in range(3)]
        for part, some in zip(parts, np.split(sent, [10, 50]), strict=True):
            part.add(some)
        merged = parts[2] + parts[0] + parts[1]
        assert merged.count == 90
        np.testing.assert_allclose(merged.mean, sent.mean(axis=0), rtol=1e-12)

    @pytest.mark.parametrize(
        ("frequency", "clients", "message"),
        [
            (-0.1, 10, "frequency = -0.1: needs a number from 0 to 1"),
            (1.1, 10, "frequency = 1.1: needs a number from 0 to 1"),
            (float("nan"), 10, "frequency = nan"),
            (0.5, 0, "clients = 0: needs a whole number from 1"),
            (0.5, 2.5, "clients = 2.5: needs a whole number from 1"),
        ],
    )
    def test_bad_numbers(self, protocol, frequency, clients, message):
        with pytest.raises(ValueError, match=message):
            protocol.mean_reports([ITEM], frequency, clients, np.random.default_rng(0))

    def test_bad_arrays(self, protocol):
        rng = np.random.default_rng(0)
        for bits, holds, message in [
            (np.zeros((5, 7)), np.ones(5, bool), r"bits has shape \(5, 7\)"),
            (np.zeros(8), np.ones(1, bool), r"bits has shape \(8,\): needs a row"),
            (np.zeros((5, 8)), np.ones(4, bool), r"holds has shape \(4,\)"),
            (np.zeros((5, 8)), np.ones(5), r"holds has .* type float64"),
        ]:
            with pytest.raises(ValueError, match=message):
                protocol.reports(bits, holds, rng)
        with pytest.raises(ValueError, match=r"bits has shape \(8,\): needs a row"):
            protocol.mean_reports(ITEM, 0.5, 10, rng)

    def test_a_decoder_for_another_code(self, protocol):
        other = MLDecoder(PolarCode.construct(64, 7))
        with pytest.raises(ValueError, match="decoder = one for PolarCode"):
            type(protocol)(PAPER, 1.0, decoder=other)

    @pytest.mark.parametrize("epsilon", [0, -1, float("inf")])
    def test_bad_epsilon(self, protocol, epsilon):
        with pytest.raises(ValueError, match="epsilon = "):
            type(protocol)(PAPER, epsilon)


class TestReportSum:
    def test_refuses_what_is_not_a_report_and_keeps_what_it_has(self):
        total = ReportSum(3)
        total.add([1.0, 2.0, 3.0])
        for bad, message in [
            ([1.0, np.nan, 0.0], "NaN or infinity"),
            ([[1.0, 2.0]], r"shape \(1, 2\)"),
            (1.0, r"shape \(\)"),
        ]:
            with pytest.raises(ValueError, match=message):
                total.add(bad)
        assert total.count == 1
        assert total.mean.tolist() == [1.0, 2.0, 3.0]

    def test_empty_and_unlike(self):
        with pytest.raises(ValueError, match="count = 0"):
            _ = ReportSum(3).mean
        with pytest.raises(ValueError, match="n = 4"):
            ReportSum(3) + ReportSum(4)


def test_holders_are_whole():
    assert holders(0.7, 1000) == 700  # although 0.7 * 1000 is not 700 in floating point
    assert holders(1 / 3, 10) == 3
    assert (holders(0.0, 7), holders(1.0, 7)) == (0, 7)


class TestSpreading:
    @pytest.mark.parametrize("count", [1, 7, 64, 65, 300, 1000, 5000])
    def test_halves_are_binomial(self, count):
        drawn = spread_evenly(np.full(20_000, count), 1, np.random.default_rng(count))
        assert (drawn.sum(axis=0) == count).all()
        values = np.arange(count + 1)
        expected = stats.binom.pmf(values, count, 0.5) * 20_000
        seen = np.bincount(drawn[0], minlength=count + 1)
        common = expected >= 8
        expected = np.append(expected[common], expected[~common].sum() + 1e-9)
        seen = np.append(seen[common], seen[~common].sum())
        statistic = ((seen - expected) ** 2 / expected).sum()
        assert stats.chi2.sf(statistic, max(1, len(seen) - 1)) > FALSE_ALARM

    @pytest.mark.parametrize("count", [0, 191, 192, 255, 256, 65_471, 65_535, 70_000, 2**31])
    def test_counts_around_the_ends_of_integer_types(self, count):
        cells = spread_evenly(np.array([count, 1]), 3, np.random.default_rng(count))
        assert cells.sum(axis=0).tolist() == [count, 1]
        # Each cell is binomial; seven standard deviations are exceeded with 3e-12.
        spread = np.sqrt(count * 7 / 64) + 1
        assert (abs(cells[:, 0] - count / 8) <= 7 * spread).all()

    def test_no_levels(self):
        cells = spread_evenly(np.array([2**31, 5]), 0, np.random.default_rng(0))
        assert cells.tolist() == [[2**31, 5]]

    def test_cells_are_alike_and_nobody_is_lost(self):
        counts = np.arange(3000)
        cells = spread_evenly(counts, 4, np.random.default_rng(1))
        assert cells.shape == (16, 3000)
        np.testing.assert_array_equal(cells.sum(axis=0), counts)
        totals = cells.sum(axis=1)
        statistic = ((totals - totals.mean()) ** 2 / totals.mean()).sum()
        assert stats.chi2.sf(statistic, 15) > FALSE_ALARM


class TestCorners:
    @pytest.mark.parametrize("protocol", [Cash(PAPER, 1.0), Prot(PAPER, 1.0)], ids=["Cash", "Prot"])
    def test_no_items_give_no_means(self, protocol):
        y = protocol.mean_reports(
            np.empty((0, 8), dtype=np.uint8), 0.5, 100, np.random.default_rng(1)
        )
        assert y.shape == (0, 64)

    @pytest.mark.parametrize("protocol", [Cash(PAPER, 1.0), Prot(PAPER, 1.0)], ids=["Cash", "Prot"])
    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (0.5, r"y has shape \(\): the last dimension must be n = 64"),
            (np.zeros((64, 3)), r"y has shape \(64, 3\): the last dimension must be n = 64"),
            (np.zeros(64, complex), "y has type complex128: needs real numbers"),
            (["0.5"] * 64, "y has type .*: needs real numbers"),
            ([np.nan] * 64, "y holds NaN or infinity"),
            ([np.inf] * 64, "y holds NaN or infinity"),
        ],
    )
    def test_a_mean_that_is_none_is_refused(self, protocol, y, message):
        with pytest.raises(ValueError, match=f"^{message}"):
            protocol.estimate(y)

    @pytest.mark.parametrize("kind", [np.float32, np.float16, np.int8, np.int64])
    def test_means_of_any_kind(self, kind):
        signs = (2 * PAPER.encode(ITEM).astype(int) - 1).astype(kind)
        for protocol in (Cash(PAPER, 1.0), Prot(PAPER, 1.0), Prot(PAPER, 1.0, decision="soft")):
            bits, frequency = protocol.estimate(signs)
            assert bits.tolist() == ITEM.tolist()
            assert frequency == pytest.approx(8)  # <y, x> with x = signs / sqrt(64)

    @pytest.mark.parametrize("protocol", [Cash, Prot])
    def test_wrong_arguments_are_named_at_construction(self, protocol):
        for epsilon in (0, -1.0, np.inf, np.nan, "1", None, True):
            with pytest.raises(ValueError, match=r"^epsilon = .*: needs a"):
                protocol(PAPER, epsilon)
        for wrong in (8, 0, Cash(PAPER, 1.0)):
            with pytest.raises(ValueError, match=r"^decoder = .*: needs a decoder, such as"):
                protocol(PAPER, 1.0, decoder=wrong)
        for delta in (0, 1, np.nan, "1e-4"):
            with pytest.raises(ValueError, match=r"^delta = .*: needs a number"):
                Cash(PAPER, 1.0, delta)
        with pytest.raises(ValueError, match=r"^n = 0: needs a whole number from 1"):
            ReportSum(0)

    @pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 8.0, 50.0])
    def test_the_coin_of_prot_is_the_largest_that_epsilon_allows(self, epsilon):
        """Words below the threshold keep the sign, and no others."""

        class Words:
            """One word for both coordinates, which are 0, and one for each coin."""

            def integers(self, low, high, count, dtype):
                threshold = keep_threshold(epsilon)
                return np.array([0] if count == 1 else [threshold - 1, threshold], dtype=dtype)

        prot = Prot(PAPER, epsilon, empty="positive")
        sent = prot.reports([ITEM, ITEM], [True, True], Words())
        assert np.sign(sent[:, 0]).tolist() == [X0, -X0]

    @pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, float])
    def test_the_noise_of_cash_does_not_depend_on_the_type_of_n(self, kind):
        cash = Cash(PAPER, 1.0)
        drawn = [
            cash.mean_reports([ITEM], 0.5, clients, np.random.default_rng(1))
            for clients in (100, kind(100))
        ]
        np.testing.assert_array_equal(*drawn)

    def test_single_precision_is_kept(self):
        """As the docstring of the decoder says, which is then twice as fast."""
        cash = Cash(PAPER, 1.0)
        assert cash._means(np.zeros(64, np.float32)).dtype == np.float32
        assert cash._means(np.zeros(64, np.float16)).dtype == np.float64

    @pytest.mark.parametrize("clients", [np.int8(100), np.uint16(20_000), 1e6, 5 * 10**9])
    @pytest.mark.parametrize("frequency", [0, 0.5, 1])
    def test_any_number_of_clients_of_any_type(self, clients, frequency):
        """Counts add up: with soft signs, the sum of all entries is that of N reports."""
        prot = Prot(PAPER, 1.0, empty="positive")
        y = prot.mean_reports([ITEM], frequency, clients, np.random.default_rng(1))
        counts = y / prot.amplitude * float(clients)
        assert counts == pytest.approx(np.rint(counts), abs=1e-3)
        assert abs(counts).sum() <= float(clients) * (1 + 1e-9)

    @pytest.mark.parametrize("wrong", ["100", None, True, float("nan"), 2**53 + 1])
    def test_nonsense_is_refused(self, wrong):
        with pytest.raises(ValueError, match=r"clients = .*: needs a whole number from 1 to"):
            holders(0.5, wrong)

    @pytest.mark.parametrize("most", [60, 64, 65, 127, 128, 255, 256, 2048, 2049, 32767, 32768])
    def test_counts_of_any_size_and_type(self, most):
        """At each edge of a word or an integer type; 6 standard deviations, below 2e-9 each."""
        rng = np.random.default_rng(1)
        counts = np.full(2000, most)
        counts[::3] = max(0, most - 70)
        counts[::7] = 0
        cells = spread_evenly(counts, 3, rng)
        assert (cells.sum(axis=0, dtype=np.int64) == counts).all()
        assert (cells >= 0).all()
        for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64):
            if most <= np.iinfo(kind).max:
                heads = fair_heads(counts.astype(kind), rng).astype(np.int64)
                assert ((heads >= 0) & (heads <= counts)).all()
                assert abs(heads.sum() - counts.sum() / 2) < 6 * (counts.sum() / 4) ** 0.5
