"""What all protocols have in common, and sums of reports."""

import numpy as np
import pytest
import scipy
from strategies import ITEM, PAPER

from ldpcash import MLDecoder, PolarCode, SCLDecoder, hadamard_code
from ldpcash.protocols.blank import Blank
from ldpcash.protocols.cash import Cash
from ldpcash.protocols.direct import KaryResponse, LocalHashing, SubsetSelection
from ldpcash.protocols.prot import Prot
from ldpcash.protocols.protocol import ReportSum

BOTH = [Cash(PAPER, 8.0), Prot(PAPER, 8.0), Prot(PAPER, 8.0, SCLDecoder(PAPER), decision="soft")]
BOTH.append(Blank(PAPER, 8.0))
BOTH += [kind(hadamard_code(8), 8.0) for kind in (KaryResponse, SubsetSelection, LocalHashing)]
NAMES = ["cash", "prot", "prot soft", "blank", "k-ary", "subset", "hashing"]


@pytest.mark.parametrize("protocol", BOTH, ids=NAMES)
class TestBoth:
    def test_finds_the_item_and_its_frequency(self, protocol):
        rng = np.random.default_rng(4)
        items = rng.integers(0, 2, (50, 8), dtype=np.uint8)
        y = protocol.mean_reports(items, 0.7, 100_000, rng)
        assert y.shape == (50, protocol.code.n)
        bits, frequency = protocol.estimate(y)
        np.testing.assert_array_equal(bits, items)
        np.testing.assert_allclose(frequency, 0.7, atol=0.05)

    def test_leading_shapes(self, protocol):
        bits, frequency = protocol.estimate(np.ones((2, 3, protocol.code.n)))
        assert bits.shape == (2, 3, 8)
        assert frequency.shape == (2, 3)
        assert protocol.estimate(np.ones(protocol.code.n)).frequency.shape == ()

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
        parts = [ReportSum(protocol.code.n) for _ in range(3)]
        for part, some in zip(parts, np.split(sent, [10, 50]), strict=True):
            part.add(some)
        merged = parts[2] + parts[0] + parts[1]
        assert merged.count == 90
        np.testing.assert_allclose(merged.mean, sent.mean(axis=0), rtol=1e-12)

    def test_bad_numbers(self, protocol, subtests):
        for frequency, clients, message in [
            (-0.1, 10, "frequency = -0.1: needs a number from 0 to 1"),
            (1.1, 10, "frequency = 1.1: needs a number from 0 to 1"),
            (float("nan"), 10, "frequency = nan"),
            (0.5, 0, "clients = 0: needs a whole number from 1"),
            (0.5, 2.5, "clients = 2.5: needs a whole number from 1"),
        ]:
            with (
                subtests.test(frequency=frequency, clients=clients),
                pytest.raises(ValueError, match=message),
            ):
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
            type(protocol)(protocol.code, 1.0, decoder=other)

    def test_bad_epsilon(self, protocol, subtests):
        for epsilon in (0, -1, float("inf")):
            with subtests.test(epsilon=epsilon), pytest.raises(ValueError, match="epsilon = "):
                type(protocol)(protocol.code, epsilon)


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


def honest_reports(protocol, clients, seed):
    rng = np.random.default_rng(seed)
    items = rng.integers(0, 2, (clients, protocol.code.k))
    return protocol.reports(items, rng.random(clients) < 0.5, rng)


class TestHonest:
    """What is let into a sum that knows its protocol."""

    @pytest.mark.parametrize("epsilon", [0.5, 4.0])
    @pytest.mark.parametrize("rejection", [0.3, 0.01])
    def test_the_norm_is_exceeded_as_often_as_stated(self, epsilon, rejection):
        """By reports of an item; a two-sided test with a false-alarm rate of 1e-6."""
        cash = Cash(PAPER, epsilon)
        held = np.ones(20_000, dtype=bool)
        sent = cash.reports(np.tile(ITEM, (20_000, 1)), held, np.random.default_rng(1))
        beyond = np.linalg.norm(sent, axis=1) > cash.grid.largest_norm(64, rejection)
        refused = np.count_nonzero(beyond)
        assert scipy.stats.binomtest(refused, 20_000, rejection).pvalue > 1e-6

    def test_an_empty_client_exceeds_it_less_often(self):
        cash = Cash(PAPER, 8.0)
        held = np.zeros(20_000, dtype=bool)
        sent = cash.reports(np.tile(ITEM, (20_000, 1)), held, np.random.default_rng(1))
        refused = np.count_nonzero(np.linalg.norm(sent, axis=1) > cash.grid.largest_norm(64, 0.1))
        assert scipy.stats.binomtest(refused, 20_000, 0.1, alternative="greater").pvalue > 1e-6

    @pytest.mark.parametrize(
        "protocol", [Cash(PAPER, 1.0), Prot(PAPER, 1.0), Blank(hadamard_code(8), 1.0)], ids=repr
    )
    def test_no_honest_client_is_refused(self, protocol):
        """Of 20,000 reports of Cash, four or more are refused with 7e-9."""
        total = ReportSum(protocol)
        total.add(honest_reports(protocol, 20_000, 1))
        assert total.rejected <= 3 * isinstance(protocol, Cash)
        assert total.count + total.rejected == 20_000

    def test_what_no_client_of_prot_sends(self):
        prot = Prot(PAPER, 1.0)
        one = np.zeros(64)
        one[3] = prot.amplitude
        for wrong in (0 * one, 2 * one, 0.5 * one, one + np.roll(one, 1), one + 1e-9, one * np.nan):
            assert not prot.honest(wrong[None]).any()
        assert prot.honest(np.array([one, -one])).all()

    def test_what_no_client_of_blank_sends(self):
        blank = Blank(hadamard_code(8), 1.0)
        sent = honest_reports(blank, 100, 2)
        assert not blank.honest(1.001 * sent[np.linalg.norm(sent, axis=1).argmax()][None]).any()
        assert not blank.honest(np.array([[np.nan] * 256, [1e200] * 256])).any()

    def test_rejected_reports_are_counted_and_change_nothing(self):
        cash = Cash(PAPER, 1.0)
        honest = honest_reports(cash, 50, 1)
        cheats = np.array([[1e9] * 64, [np.nan] * 64, [np.inf] * 64, [1e200] * 64])
        total, plain = ReportSum(cash), ReportSum(64)
        total.add(np.vstack([honest[:20], cheats, honest[20:]]))
        plain.add(honest)
        assert (total.count, total.rejected) == (50, 4)
        np.testing.assert_allclose(total.mean, plain.mean, rtol=1e-12)
        total.add(honest[0])  # a single report
        assert total.count == 51
        both = total + total
        assert (both.count, both.rejected) == (102, 8)
        np.testing.assert_array_equal(both.mean, total.mean)

    def test_a_checked_sum_takes_no_unchecked_one(self):
        total = ReportSum(Cash(PAPER, 1.0))
        for other, message in [
            (ReportSum(64), "other = a sum of reports of any protocol: this one is of Cash"),
            (
                ReportSum(Prot(PAPER, 1.0)),
                r"other = a sum of reports of Prot\(.*: this one is",
            ),
            (ReportSum(Cash(PAPER, 2.0)), r"other = .*epsilon=2.0.*: this one is of .*epsilon=1.0"),
            (ReportSum(2), "n = 2: only sums of the same length"),
        ]:
            with pytest.raises(ValueError, match=f"^{message}"):
                total + other
        with pytest.raises(ValueError, match="reports has shape"):
            total.add(np.zeros(63))

    @pytest.mark.parametrize(
        "protocol", [Cash(PAPER, 2.0), Prot(PAPER, 2.0), Blank(hadamard_code(8), 2.0)], ids=repr
    )
    def test_single_precision_is_as_honest(self, protocol):
        """Of 3,000 reports of Cash, two or more are refused with 5e-6, and with this seed none."""
        total = ReportSum(protocol)
        total.add(honest_reports(protocol, 3000, 1).astype(np.float32))
        assert (total.count, total.rejected) == (3000, 0)

    def test_sums_are_of_real_numbers_and_with_sums(self):
        total = ReportSum(Prot(PAPER, 1.0))
        with pytest.raises(ValueError, match=r"^reports has type complex128"):
            total.add(np.zeros((1, 64), complex))
        with pytest.raises(TypeError):
            total + 3
        assert (total + ReportSum(Prot(PAPER, 1.0))).count == 0

    def test_other_protocols_check_that_reports_are_finite(self):
        total = ReportSum(SubsetSelection(hadamard_code(4), 1.0))
        total.add(np.array([[0.5] * 16, [np.nan] * 16]))
        assert (total.count, total.rejected) == (1, 1)


class TestCorners:
    @pytest.mark.parametrize("protocol", [Cash, Prot])
    def test_no_items_give_no_means(self, protocol):
        y = protocol(PAPER, 1.0).mean_reports(
            np.empty((0, 8), dtype=np.uint8), 0.5, 100, np.random.default_rng(1)
        )
        assert y.shape == (0, 64)

    @pytest.mark.parametrize("protocol", [Cash, Prot])
    def test_a_mean_that_is_none_is_refused(self, protocol, subtests):
        for y, message in [
            (0.5, r"y has shape \(\): the last dimension must be n = 64"),
            (np.zeros((64, 3)), r"y has shape \(64, 3\): the last dimension must be n = 64"),
            (np.zeros(64, complex), "y has type complex128: needs real numbers"),
            (["0.5"] * 64, "y has type .*: needs real numbers"),
            ([np.nan] * 64, "y holds NaN or infinity"),
            ([np.inf] * 64, "y holds NaN or infinity"),
        ]:
            with subtests.test(message=message), pytest.raises(ValueError, match=f"^{message}"):
                protocol(PAPER, 1.0).estimate(y)

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
        for wrong in (0, "64", Cash):
            with pytest.raises(ValueError, match=r"^n = .*: needs a whole number from 1"):
                ReportSum(wrong)

    def test_single_precision_is_kept(self):
        """As the docstring of the decoder says, which is then twice as fast."""
        cash = Cash(PAPER, 1.0)
        assert cash._means(np.zeros(64, np.float32)).dtype == np.float32
        assert cash._means(np.zeros(64, np.float16)).dtype == np.float64
