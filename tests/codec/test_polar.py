"""PolarCode against its definition, Arikan's recursion and published weight distributions."""

import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from strategies import codes

from ldpcash import PolarCode
from ldpcash.base.arrays import as_bits
from ldpcash.codec.construction import reliability


def generator(n):
    """G by its definition, the m-th Kronecker power."""
    matrix = np.array([[1]])
    while len(matrix) < n:
        matrix = np.kron(matrix, [[1, 0], [1, 1]])
    return matrix


class TestEncoding:
    @given(codes(), st.integers(0, 2**32))
    def test_is_multiplication_by_the_kronecker_power(self, code, seed):
        bits = np.random.default_rng(seed).integers(0, 2, (3, code.k))
        u = np.zeros((3, code.n), dtype=int)
        u[:, code.info] = bits
        for index, sources in code.dynamic.items():
            u[:, index] = sum(u[:, source] for source in sources) % 2
        np.testing.assert_array_equal(code.encode(bits), u @ generator(code.n) % 2)

    @pytest.mark.parametrize("shape", [(), (1,), (0,), (5000,), (2, 0, 3), (2, 3, 4)])
    def test_keeps_any_leading_shape(self, shape):
        code = PolarCode.construct(16, 5)
        bits = np.random.default_rng(0).integers(0, 2, (*shape, 5), dtype=np.uint8)
        codewords = code.encode(bits)
        assert codewords.shape == (*shape, 16)
        assert codewords.dtype == np.uint8
        flat = [code.encode(word) for word in bits.reshape(-1, 5)]
        np.testing.assert_array_equal(codewords.reshape(-1, 16), np.reshape(flat, (-1, 16)))

    @pytest.mark.parametrize("kind", [bool, np.int8, np.uint16, np.int64, np.float64])
    def test_takes_bits_of_any_type(self, kind):
        bits = np.array([[1, 0, 1]])
        code = PolarCode.construct(8, 3)
        np.testing.assert_array_equal(code.encode(bits.astype(kind)), code.encode(bits))

    @pytest.mark.parametrize("bad", [2, -1, 0.5, np.nan, 255])
    def test_refuses_what_is_not_a_bit(self, bad):
        with pytest.raises(ValueError, match=r"bits holds .*only 0 and 1"):
            PolarCode.construct(8, 3).encode([0, bad, 1])

    def test_refuses_a_uint8_that_is_not_a_bit(self):
        with pytest.raises(ValueError, match=r"bits holds .*2.*only 0 and 1"):
            as_bits("bits", np.array([0, 2], dtype=np.uint8), 2)

    @pytest.mark.parametrize("bits", [[0, 1], 1, [[0, 1, 0, 1]]])
    def test_refuses_the_wrong_width(self, bits):
        with pytest.raises(ValueError, match=r"bits has shape .*must be 3"):
            PolarCode.construct(8, 3).encode(bits)


class TestArguments:
    @pytest.mark.parametrize("n", [0, -4, 3, 48, 8192, 4.5, "8", True, None])
    def test_length(self, n):
        with pytest.raises(ValueError, match=r"^n = .*from 1 to 4096"):
            PolarCode(n, [0])
        with pytest.raises(ValueError, match=r"^n = .*from 1 to 4096"):
            PolarCode.construct(n, 1)

    def test_whole_numbers_of_any_kind(self):
        assert PolarCode(8.0, [7]) == PolarCode(np.int64(8), [7]) == PolarCode(8, [7])
        assert PolarCode.construct(8.0, 2.0) == PolarCode.construct(8, 2)

    @pytest.mark.parametrize(
        "info",
        [
            [],
            [0, 0],
            np.array([1, 2**64 - 1], dtype=np.uint64),
            [-1, 2],
            [8],
            [[1, 2]],
            [1.0, 2.0],
            list(range(9)),
            3,
            [[1], [2, 3]],
        ],
    )
    def test_information_set(self, info):
        with pytest.raises(ValueError, match="info = "):
            PolarCode(8, info)

    @pytest.mark.parametrize(
        ("dynamic", "message"),
        [
            ({5: [3]}, "5 is not a frozen index"),
            ({8: [3]}, "8 is not a frozen index"),
            ({-1: [3]}, "-1 is not a frozen index"),
            ({6: []}, "6 needs distinct information indices"),
            ({6: [3, 3]}, "6 needs distinct information indices"),
            ({6: [4]}, "6 needs distinct information indices"),
            ({4: [3, 5]}, "5 comes after 4"),
            ({6.5: [3]}, "needs information indices for each frozen index"),
            ({6: 3}, "needs information indices for each frozen index"),
            ({6: [3.0]}, "needs information indices for each frozen index"),
            (5, "needs information indices for each frozen index"),
        ],
    )
    def test_dynamic_frozen_bits(self, dynamic, message):
        with pytest.raises(ValueError, match=f"dynamic = .*: {message}"):
            PolarCode(8, [3, 5, 7], dynamic)

    @pytest.mark.parametrize("k", [0, 9, -1, 2.5, "4"])
    def test_dimension(self, k):
        with pytest.raises(ValueError, match=r"^k = .*from 1 to 8"):
            PolarCode.construct(8, k)

    def test_method(self):
        with pytest.raises(ValueError, match=r"method = 'magic'.*pw, ga, bhattacharyya, rm"):
            PolarCode.construct(8, 4, "magic")

    @pytest.mark.parametrize("sigma", [0, -1, np.nan, np.inf, 1e-4, 1e4])
    def test_design_sigma(self, sigma):
        with pytest.raises(ValueError, match=r"design_sigma = .*from 0.001 to 1000"):
            PolarCode.construct(8, 4, "ga", design_sigma=sigma)

    @pytest.mark.parametrize("method", ["pw", "rm"])
    def test_design_sigma_where_there_is_no_channel(self, method):
        with pytest.raises(ValueError, match="no channel"):
            PolarCode.construct(8, 4, method, design_sigma=1.0)

    def test_attributes(self):
        code = PolarCode(8, [7, 3, 5])
        assert (code.n, code.k) == (8, 3)
        assert code.info.tolist() == [3, 5, 7]
        assert np.flatnonzero(~code.frozen).tolist() == [3, 5, 7]
        assert repr(code) == "PolarCode(8, [3, 5, 7])"
        assert code == PolarCode(8, [3, 5, 7])
        assert code != PolarCode(16, [3, 5, 7])
        other = PolarCode(8, [3, 5, 7], {6: [5, 3]})
        assert repr(other) == "PolarCode(8, [3, 5, 7], {6: (3, 5)})"
        assert other != code
        assert len({code, other, PolarCode(8, [3, 5, 7])}) == 2
        with pytest.raises(ValueError, match="read-only"):
            code.info[0] = 1


class TestConstruction:
    def test_polarization_weight_of_the_paper_s_code(self):
        code = PolarCode.construct(64, 8)
        assert code.info.tolist() == [31, 47, 55, 59, 60, 61, 62, 63]
        assert code.weight_distribution() == {0: 1, 16: 4, 32: 246, 48: 4, 64: 1}

    @pytest.mark.parametrize("n", [128, 256])
    def test_longer_codes_of_eight_bits_repeat_the_one_of_64(self, n):
        short, long = PolarCode.construct(64, 8), PolarCode.construct(n, 8)
        repeated = np.tile(short.codebook(), n // 64)
        np.testing.assert_array_equal(long.codebook(), repeated)

    def test_numpy_integers(self):
        code = PolarCode.construct(np.int64(64), np.int64(8))
        assert repr(code) == repr(PolarCode.construct(64, 8))

    def test_polarization_weight_has_no_ties(self):
        assert len(np.unique(reliability(4096))) == 4096

    @pytest.mark.parametrize(("r", "m"), [(1, 3), (2, 5), (1, 8), (3, 7)])
    def test_the_reed_muller_rule_gives_reed_muller_codes(self, r, m):
        heavy = [i for i in range(2**m) if i.bit_count() >= m - r]
        code = PolarCode.construct(2**m, len(heavy), "rm")
        assert code.info.tolist() == heavy

    def test_bhattacharyya_on_an_erasure_channel(self):
        """Z of the eight channels from BEC(1/2), by the recursion of Arikan (2009)."""
        sigma = (1 / (2 * np.log(2))) ** 0.5  # which makes Z = 1/2
        z = [0.99609375, 0.87890625, 0.80859375, 0.31640625]
        z += [0.68359375, 0.19140625, 0.12109375, 0.00390625]
        odds = reliability(8, "bhattacharyya", sigma)
        np.testing.assert_allclose(1 / (1 + np.exp(odds)), z, rtol=1e-12)

    @pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
    def test_gaussian_approximation_by_adaptive_quadrature(self, sigma):
        def expected_tanh(mean):
            def integrand(z):
                density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
                return np.tanh((mean + np.sqrt(2 * mean) * z) / 2) * density

            return quad(integrand, -12, 12, epsabs=1e-13, limit=200, points=[-np.sqrt(mean / 2)])[0]

        def minus(mean):
            target = expected_tanh(mean) ** 2
            return brentq(lambda x: expected_tanh(x) - target, 1e-9, mean, xtol=1e-13)

        means = [2 / sigma**2]
        for _ in range(2):
            means = [new for mean in means for new in (minus(mean), 2 * mean)]
        ours = np.exp(reliability(4, "ga", sigma))
        np.testing.assert_allclose(ours, means, rtol=1e-4)

    @pytest.mark.parametrize("method", ["ga", "bhattacharyya"])
    def test_reliabilities_do_not_run_together(self, method):
        """Nor over- or underflow, on channels from hopeless to nearly perfect."""
        assert len(np.unique(reliability(4096, method))) > 4000
        for sigma in (1e-3, 1e3):
            assert np.isfinite(reliability(4096, method, sigma)).all()

    @pytest.mark.parametrize("method", ["pw", "ga", "bhattacharyya", "rm"])
    def test_better_channels_come_first(self, method):
        """Replacing a minus by a plus never makes a channel worse."""
        values = reliability(256, method)
        for index in range(256):
            for bit in range(8):
                assert values[index | 1 << bit] >= values[index]


class TestDynamicFrozenBits:
    def test_any_linear_code_can_be_written_so(self):
        """The (7, 4) Hamming code with a zero in front: weights 3 and 4, and one word of 7."""
        code = PolarCode(8, [3, 5, 6, 7], {})
        assert code.weight_distribution() == {0: 1, 4: 14, 8: 1}  # extended Hamming
        shifted = PolarCode(8, [1, 2, 4], {7: [1, 2, 4]})
        assert shifted.weight_distribution() == Counter(
            int(sum(word)) for word in shifted.codebook()
        )

    def test_the_last_index_may_be_dynamic(self):
        code = PolarCode(4, [1, 2], {3: [1]})
        assert code.codebook().tolist() == [[0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]
        assert code.sensitivity == 2 * (2 / 4) ** 0.5


class TestWeights:
    @given(codes(max_m=6, max_k=10))
    def test_distribution_counts_the_codebook(self, code):
        counted = Counter(code.codebook().sum(axis=1).tolist())
        assert code.weight_distribution() == dict(sorted(counted.items()))
        assert code.sensitivity == pytest.approx(2 * np.sqrt(max(counted) / code.n), rel=1e-15)

    def test_rows_of_the_codebook(self):
        code = PolarCode.construct(16, 5)
        items = [[int(bit) for bit in format(i, "05b")] for i in range(32)]
        np.testing.assert_array_equal(code.codebook(), code.encode(items))

    def test_extended_hamming_code(self):
        """RM(2, 4), the (16, 11) extended Hamming code; MacWilliams and Sloane, ch. 1."""
        weights = PolarCode.construct(16, 11, "rm").weight_distribution()
        assert weights == {0: 1, 4: 140, 6: 448, 8: 870, 10: 448, 12: 140, 16: 1}

    def test_second_order_reed_muller_code(self):
        """RM(2, 5); MacWilliams and Sloane, ch. 15."""
        weights = PolarCode.construct(32, 16, "rm").weight_distribution()
        assert weights == {0: 1, 8: 620, 12: 13888, 16: 36518, 20: 13888, 24: 620, 32: 1}

    def test_twenty_bits_without_holding_the_codebook(self):
        code = PolarCode.construct(4096, 20)
        tracemalloc.start()
        weights = code.weight_distribution()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert sum(weights.values()) == 2**20
        assert all(weights[w] == weights[4096 - w] for w in weights)  # 1 is a codeword
        assert peak < 2**25  # the codebook itself is 2**32 bytes

    def test_sensitivity_without_the_last_index(self):
        """Freezing the last index of the paper's code takes the all-one word away (Remark 1)."""
        code = PolarCode(64, [31, 47, 55, 59, 60, 61, 62])
        assert code.sensitivity == 2 * np.sqrt(48 / 64)

    def test_beyond_what_can_be_enumerated(self):
        code = PolarCode.construct(64, 21)
        for attempt in (code.codebook, code.weight_distribution):
            with pytest.raises(ValueError, match=r"k = 21: .* up to 20"):
                attempt()
        assert code.sensitivity == 2.0

    def test_sensitivity_beyond_that_is_a_safe_bound(self):
        """RM(2, 6) without the all-one word: its heaviest words weigh 48 (ch. 15 again)."""
        indices = np.flatnonzero(np.bitwise_count(np.arange(64)) >= 4)[:-1]
        assert PolarCode(64, indices).sensitivity == 2 * np.sqrt(48 / 64)
        assert PolarCode(64, indices[:20]).sensitivity <= 2 * np.sqrt(48 / 64)
        indices = np.flatnonzero(np.bitwise_count(np.arange(4096)) >= 10)[:-1]
        assert PolarCode(4096, indices).sensitivity == 2 * np.sqrt(3 / 4)

    @given(codes(max_m=6, max_k=10))
    def test_the_bound_holds(self, code):
        if code.frozen[-1]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("ldpcash.codec.polar.MAX_ENUMERABLE", 0)
                bound = PolarCode(code.n, code.info, code.dynamic).sensitivity
            assert code.sensitivity <= bound < 2
