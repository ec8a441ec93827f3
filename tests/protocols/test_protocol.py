"""What all protocols have in common, and sums of reports."""

import numpy as np
import pytest
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
        with pytest.raises(ValueError, match=r"^n = 0: needs a whole number from 1"):
            ReportSum(0)

    def test_single_precision_is_kept(self):
        """As the docstring of the decoder says, which is then twice as fast."""
        cash = Cash(PAPER, 1.0)
        assert cash._means(np.zeros(64, np.float32)).dtype == np.float32
        assert cash._means(np.zeros(64, np.float16)).dtype == np.float64
