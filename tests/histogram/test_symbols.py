"""Symbols of codewords against the Hadamard code, optimal local hashing and enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpcash import PolarCode
from ldpcash.histogram.prot_channels import ProtChannels
from ldpcash.histogram.symbols import (
    SymbolBlocks,
    SymbolResponse,
    best_symbol_width,
    symbol_code,
)


class TestCodes:
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

    def test_lengths_by_rule(self, subtests):
        """One information bit in four allowed indices at most, if blocks and codes are so long."""
        for bits in range(1, 7):
            with subtests.test(bits=bits):
                lengths = [symbol_code(k, bits, 8.0).n for k in (1, 4, 7, 8, 40, 64, 128, 256)]
                assert lengths == sorted(lengths)
                assert lengths[-1] <= 4096
                width, place = (1, 0) if bits == 1 else (2**bits, {2: 0, 3: 1}.get(bits, 3))
                for k, n in zip((7, 8, 40, 64), lengths[2:], strict=False):
                    assert n == width * 2 ** int(np.ceil(np.log2(4 * k / bits))) >= width << place
                assert ProtChannels(symbol_code(1, bits, 8.0), 1.0, 2, bits).code.k == 1

    def test_wrong_arguments_of_a_code(self, subtests):
        for name, value in [
            ("k", 0),
            ("k", 2.5),
            ("width", 0),
            ("strength", 0.0),
            ("strength", np.inf),
            ("n", 16.5),
        ]:
            with (
                subtests.test(name=name, value=value),
                pytest.raises(ValueError, match=f"^{name} = "),
            ):
                symbol_code(**{"k": 8, "width": 2, "strength": 8.0, name: value})

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


def value_of(symbol, coordinate, width):
    """The bit at a coordinate of a block: the sum of the symbol's bits at which it is 0."""
    if width == 1:
        return symbol
    return (symbol & ~coordinate).bit_count() % 2


class TestBlocks:
    @pytest.mark.parametrize(("n", "width"), [(8, 1), (16, 2), (64, 3), (256, 4)])
    def test_allowed_rows_are_those_made_of_symbols(self, n, width):
        """Each row of G by itself, against all words that a block can be."""
        blocks = SymbolBlocks(n, width)
        high, size, low = blocks._shape
        assert blocks.count == high * low
        symbols = {
            tuple(value_of(symbol, c, width) for c in range(size)) for symbol in range(2**width)
        }
        made = []
        for index in range(n):
            word = PolarCode(n, [index]).encode([1]).reshape(high, size, low)
            parts = np.moveaxis(word, 1, 2).reshape(-1, size)
            if {tuple(part) for part in parts.tolist()} <= symbols:
                made.append(index)
        assert blocks.allowed().tolist() == made

    @given(st.sampled_from([(4, 1), (16, 2), (32, 3), (128, 4)]), st.integers(0, 2**32))
    def test_means_are_signs_of_all_symbols_counted(self, setting, seed):
        """Every symbol in every block, one by one."""
        n, width = setting
        blocks = SymbolBlocks(n, width)
        high, size, low = blocks._shape
        counts = np.random.default_rng(seed).integers(0, 9, (2, blocks.count * 2**width))
        expected = np.zeros((2, high, size, low))
        cells = counts.reshape(2, high, low, 2**width)
        for symbol, c in itertools.product(range(2**width), range(size)):
            if width == 1 or c < size - 1:
                sign = 2 * value_of(symbol, c, width) - 1
                expected[:, :, c] += 0.5 * sign * cells[..., symbol]
        means = blocks.means_of(counts, 0.5)
        np.testing.assert_array_equal(means, expected.reshape(2, n))
        assert not means[:, ~blocks.live].any()

    @given(st.integers(1, 6), st.integers(0, 2**32))
    def test_a_single_report_points_at_its_word(self, width, seed):
        """The symbols of a word, each counted once, have the word's own signs for means."""
        code = symbol_code(8, width, 6.0)
        blocks = SymbolBlocks(code.n, width)
        items = np.random.default_rng(seed).integers(0, 2, (3, 8), dtype=np.uint8)
        counts = np.eye(2**width, dtype=int)[blocks.symbols_of(code.encode(items))]
        means = blocks.means_of(counts.reshape(3, -1), 1.0)
        np.testing.assert_array_equal(means, np.where(blocks.live, code.signs(items), 0))

    def test_wrong_arguments(self):
        for width in (0, 7, 1.5, "2"):
            with pytest.raises(ValueError, match=r"^width = .* from 1 to 6"):
                SymbolBlocks(64, width)
        for width, least in ((2, 4), (3, 16), (4, 128), (5, 256), (6, 512)):
            assert SymbolBlocks(least, width).count == least >> width
            with pytest.raises(ValueError, match=f"^n = {least // 2}: .* need n >= {least}"):
                SymbolBlocks(least // 2, width)


class TestResponse:
    @given(st.floats(1e-3, 30), st.integers(1, 6))
    def test_the_right_symbol_is_e_to_the_epsilon_times_as_likely_as_another(self, epsilon, width):
        response = SymbolResponse(epsilon, width)
        other = (1 - response.truth) / 2**width
        assert response.match + (2**width - 1) * other == pytest.approx(1, rel=1e-12)
        odds = np.log(response.match / other)
        assert odds == pytest.approx(epsilon, rel=1e-3, abs=1e-9)  # lambda is rounded down
        assert odds <= epsilon * (1 + 1e-9)

    @given(st.floats(0.1, 5), st.integers(1, 6), st.floats(0, 1))
    def test_variance_is_that_of_what_single_clients_say(self, epsilon, width, frequency):
        """Of a client whose symbol matches or not: the estimate is linear in the matches."""
        response, g = SymbolResponse(epsilon, width), 2**width

        def spread(match):
            says = [(g - 1) / (response.truth * (g - 1)), -1 / (response.truth * (g - 1))]
            return match * (1 - match) * (says[0] - says[1]) ** 2

        one = (1 - frequency) * spread(1 / g) + frequency * spread(response.match)
        assert response.variance(np.array(frequency), 50) == pytest.approx(one / 50, rel=1e-9)
        assert response.noise**2 == pytest.approx(spread(1 / g), rel=1e-9)

    def test_p_values_fall_with_the_estimate_and_grow_with_what_others_hold(self):
        response = SymbolResponse(2.0, 3)
        p = response.p_value(np.linspace(-1, 1, 50), np.zeros(50), 1000)
        assert (np.diff(p) <= 0).all()
        assert (p[0], p[-1]) == (1, pytest.approx(0, abs=1e-100))
        p = response.p_value(np.full(50, 0.1), np.linspace(0, 1, 50), 1000)
        assert (np.diff(p) > 0).all()
