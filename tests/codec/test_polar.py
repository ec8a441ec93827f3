"""PolarCode against its definition, brute force and published weight distributions."""

import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import codes

from ldpcash import PolarCode


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

    def test_keeps_any_leading_shape(self, subtests):
        code = PolarCode.construct(16, 5)
        for shape in ((), (1,), (0,), (5000,), (2, 0, 3), (2, 3, 4)):
            with subtests.test(shape=shape):
                bits = np.random.default_rng(0).integers(0, 2, (*shape, 5), dtype=np.uint8)
                codewords = code.encode(bits)
                assert codewords.shape == (*shape, 16)
                assert codewords.dtype == np.uint8
                flat = [code.encode(word) for word in bits.reshape(-1, 5)]
                np.testing.assert_array_equal(codewords.reshape(-1, 16), np.reshape(flat, (-1, 16)))

    def test_takes_bits_of_any_type(self, subtests):
        bits = np.array([[1, 0, 1]])
        code = PolarCode.construct(8, 3)
        for kind in (bool, np.int8, np.uint16, np.int64, np.float64):
            with subtests.test(kind=kind):
                np.testing.assert_array_equal(code.encode(bits.astype(kind)), code.encode(bits))

    def test_refuses_what_is_not_a_bit(self, subtests):
        code = PolarCode.construct(8, 3)
        for bad in (2, -1, 0.5, np.nan, 255):
            with (
                subtests.test(bad=bad),
                pytest.raises(ValueError, match="only 0 and 1 are bits"),
            ):
                code.encode([0, bad, 1])

    @pytest.mark.parametrize("bits", [[0, 1], 1, [[0, 1, 0, 1]]])
    def test_refuses_the_wrong_width(self, bits):
        with pytest.raises(ValueError, match=r"bits has shape .*must be 3"):
            PolarCode.construct(8, 3).encode(bits)


class TestModulation:
    @given(codes(), st.integers(0, 2**32))
    def test_a_one_is_sent_as_plus_and_a_zero_as_minus(self, code, seed):
        bits = np.random.default_rng(seed).integers(0, 2, (2, 3, code.k))
        signs = code.signs(bits)
        assert signs.dtype == np.int8
        np.testing.assert_array_equal(signs, np.where(code.encode(bits), 1, -1))

    @given(codes(), st.integers(0, 2**32))
    def test_signals_are_the_signs_with_an_energy_of_one(self, code, seed):
        bits = np.random.default_rng(seed).integers(0, 2, (3, code.k))
        signals = code.signals(bits)
        np.testing.assert_allclose((signals**2).sum(axis=-1), 1, rtol=1e-12)
        np.testing.assert_array_equal(np.sign(signals), code.signs(bits))

    @given(codes(max_m=6, max_k=6))
    def test_the_sensitivity_is_how_far_signals_are_apart(self, code):
        signals = code.signals([[i >> j & 1 for j in range(code.k)] for i in range(2**code.k)])
        apart = np.linalg.norm(signals[:, None] - signals, axis=-1).max()
        assert code.sensitivity == pytest.approx(apart, rel=1e-12)


class TestArguments:
    def test_length(self, subtests):
        for n in (0, -4, 3, 48, 2**17, 4.5, "8", True, None):
            with subtests.test(n=n):
                with pytest.raises(ValueError, match=r"^n = .*from 1 to 65536"):
                    PolarCode(n, [0])
                with pytest.raises(ValueError, match=r"^n = .*from 1 to 65536"):
                    PolarCode.construct(n, 1)

    def test_whole_numbers_of_any_kind(self):
        assert PolarCode(8.0, [7]) == PolarCode(np.int64(8), [7]) == PolarCode(8, [7])
        assert PolarCode.construct(8.0, 2.0) == PolarCode.construct(8, 2)

    def test_information_set(self, subtests):
        for info in (
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
        ):
            with subtests.test(info=info), pytest.raises(ValueError, match="info = "):
                PolarCode(8, info)

    def test_dynamic_frozen_bits(self, subtests):
        for dynamic, message in [
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
        ]:
            with (
                subtests.test(dynamic=dynamic),
                pytest.raises(ValueError, match=f"dynamic = .*: {message}"),
            ):
                PolarCode(8, [3, 5, 7], dynamic)

    def test_dimension(self, subtests):
        for k in (0, 9, -1, 2.5, "4"):
            with subtests.test(k=k), pytest.raises(ValueError, match=r"^k = .*from 1 to 8"):
                PolarCode.construct(8, k)

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
        assert code.max_weight == max(counted)
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
                bounded = PolarCode(code.n, code.info, code.dynamic)
                bound = bounded.sensitivity
            assert code.sensitivity <= bound < 2
            assert code.max_weight <= bounded.max_weight < code.n
