"""LLRs of odd sizes, types and shapes: what every decoder makes of them."""

from itertools import product

import numpy as np
import pytest
from strategies import DECODERS, received

from ldpcash import PolarCode, SCLDecoder


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.filterwarnings("error")
class TestOddInputs:
    code = PolarCode.construct(32, 6)

    def test_extreme_sizes(self, name, subtests):
        single = [np.inf, 1e38, 1e29, 1e-29, 1e-40]
        double = [np.inf, 1e308, 1e100, 1e29, 1e-29, 1e-310, 5e-324]
        for kind, size in [*product([np.float32], single), *product([np.float64], double)]:
            with subtests.test(kind=kind, size=size):
                items, llr = received(self.code, 20, 0.0, 1, kind)
                decoded = DECODERS[name](self.code).decode(llr * kind(size))
                if name == "exact" and size < 1e-100:
                    # products of such LLRs are 0: nothing to decode
                    assert decoded.shape == items.shape
                else:
                    np.testing.assert_array_equal(decoded, items)

    def test_zeros(self, name):
        decoded = DECODERS[name](self.code).decode(np.zeros((3, 32)))
        assert decoded.shape == (3, 6)
        assert (decoded <= 1).all()

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_known_bits_do_not_drown_the_others(self, name, kind, subtests):
        """Two bits known, the rest as usual: the same answers however large their LLRs are."""
        items, llr = received(self.code, 200, 0.7, 2, kind)
        right = np.where(self.code.encode(items)[:, [5, 20]], -1, 1).astype(kind)
        llr[:, [5, 20]] = 100 * right
        expected = DECODERS[name](self.code).decode(llr)
        for known in (1e3, 1e6, 1e10, 1e18, 1e29, 1e31, np.inf):
            with subtests.test(known=known):
                llr[:, [5, 20]] = kind(known) * right
                np.testing.assert_array_equal(DECODERS[name](self.code).decode(llr), expected)

    def test_a_known_bit_outweighs_any_number_of_others(self, name):
        code = PolarCode(32, [31])
        llr = np.full(32, 1e29)
        llr[7] = -np.inf
        expected = [1] if name != "hard ml" else [0]
        assert DECODERS[name](code).decode(llr).tolist() == expected

    def test_contradictions_still_give_an_answer(self, name):
        llr = np.where(np.arange(32) % 3 == 0, np.inf, -np.inf)
        assert DECODERS[name](self.code).decode(llr).shape == (6,)

    def test_nan(self, name):
        llr = np.ones((4, 32))
        llr[2, 3] = np.nan
        with pytest.raises(ValueError, match="llr holds NaN"):
            DECODERS[name](self.code).decode(llr)

    def test_shapes(self, name, subtests):
        for shape in ((), (1,), (0,), (2, 3), (2, 0)):
            with subtests.test(shape=shape):
                decoded = DECODERS[name](self.code).decode(np.ones((*shape, 32)))
                assert decoded.shape == (*shape, 6)
                assert decoded.dtype == np.uint8

    def test_wrong_width(self, name, subtests):
        for llr in (np.ones(31), np.ones((32, 1)), 1.0):
            with (
                subtests.test(shape=np.shape(llr)),
                pytest.raises(ValueError, match=r"llr has shape .*must be n = 32"),
            ):
                DECODERS[name](self.code).decode(llr)

    def test_wrong_type(self, name):
        with pytest.raises(ValueError, match="llr has type complex128"):
            DECODERS[name](self.code).decode(np.ones(32, dtype=complex))

    def test_other_number_types(self, name, subtests):
        for kind in (np.int8, np.int64, np.float16, bool):
            with subtests.test(kind=kind):
                llr = np.ones(32, dtype=kind)
                assert not DECODERS[name](self.code).decode(llr).any()


class TestListMetricsOfOddInputs:
    @pytest.mark.parametrize("exact", [False, True])
    def test_finite(self, exact, subtests):
        for value in (np.inf, -np.inf, 1e308, 0.0, 5e-324):
            with subtests.test(value=value):
                bits, metrics = SCLDecoder(PolarCode.construct(32, 6), 8, exact).decode_list(
                    np.where(np.arange(32) % 5, value, -value)
                )
                assert np.isfinite(metrics).all()
                assert bits.shape == (8, 6)

    def test_a_known_bit_costs_nothing_where_it_agrees(self):
        decoder = SCLDecoder(PolarCode(2, [0, 1]), 4, exact=True)
        _, metrics = decoder.decode_list([np.inf, 1.0])
        np.testing.assert_allclose(metrics[:2], np.log1p(np.exp([-1.0, 1.0])), rtol=1e-12)
