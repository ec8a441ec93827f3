"""Codes of symbols: their words against the definition, and what the decoder finds against sums
over all words."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, norm
from strategies import FALSE_ALARM, PAPER

from ldpcash import MLDecoder, PolarCode, SCLDecoder
from ldpcash.codec.crc import with_checks
from ldpcash.codec.symbol_decoder import SymbolDecoder
from ldpcash.codec.symbols import (
    code_of_symbols,
    hadamard_code,
    place_of,
    symbol_energies,
    symbol_width,
    symbols_of,
    walsh_hadamard,
)


@st.composite
def symbol_codes(draw):
    """Any code of up to 4 symbols of 2 or 3 bits, with any dynamic frozen bits."""
    width, levels = draw(st.integers(2, 3)), draw(st.integers(0, 2))
    size, blocks = 2**width, 2**levels
    allowed = [size * (b + 1) - 1 - 2**p for b in range(blocks) for p in range(width)]
    allowed = draw(st.permutations(allowed))
    k = draw(st.integers(1, min(6, len(allowed))))
    info, frozen = allowed[:k], allowed[k:]
    dynamic = {}
    for index in frozen[: draw(st.integers(0, len(frozen)))]:
        sources = [source for source in info if source < index]
        if sources:
            dynamic[index] = sources[: draw(st.integers(1, len(sources)))]
    return PolarCode(size * blocks, info, dynamic), width


def test_the_hadamard_code_has_all_sums():
    for k in (1, 3, 6):
        words = hadamard_code(k).codebook()
        columns = {tuple(column) for column in words.T}
        sums = itertools.product([0, 1], repeat=k)
        items = np.array(list(itertools.product([0, 1], repeat=k)))
        assert columns == {tuple((items * mask).sum(axis=1) % 2) for mask in sums}


def test_the_transform_is_its_definition():
    values = np.random.default_rng(1).standard_normal((3, 16, 5))
    parity = np.bitwise_count(np.arange(16)[:, None] & np.arange(16)) % 2
    expected = np.einsum("st,btl->bsl", 1.0 - 2 * parity, values)
    np.testing.assert_allclose(walsh_hadamard(values.copy()), expected, atol=1e-12)


@given(symbol_codes())
@settings(max_examples=60, deadline=None)
def test_words_are_symbols_in_the_hadamard_code(drawn):
    """Coordinate c of a block is the sum of those bits of its symbol at which c is 0."""
    code, width = drawn
    words = code.codebook()
    symbols = symbols_of(words, width)
    inverted = ~np.arange(2**width) & (2**width - 1)
    rebuilt = np.bitwise_count(symbols[:, :, None] & inverted) % 2
    np.testing.assert_array_equal(rebuilt.reshape(words.shape), words)
    assert symbol_width(code) >= width


def test_which_codes_are_made_of_symbols():
    assert symbol_width(PAPER) == 1
    assert symbol_width(PolarCode(16, [11, 13, 14])) == 4
    assert symbol_width(PolarCode(16, [3, 13, 14])) == 3
    assert symbol_width(PolarCode(16, [5, 10])) == 2
    assert symbol_width(PolarCode(16, [5], {10: [5]})) == 2
    assert symbol_width(PolarCode(16, [5], {15: [5]})) == 1
    assert place_of(5, 2) == (1, 1)


def likelihoods(code, width, llr):
    """log P of all words u of symbols, information or not, by going through all: (u, number)."""
    blocks = code.n >> width
    free = [(b + 1 << width) - 1 - 2**p for b in range(blocks) for p in range(width)]
    everything = PolarCode(code.n, sorted(free))
    items = everything.codebook()
    u = np.zeros((len(items), blocks), dtype=int)
    bits = np.array(list(itertools.product([0, 1], repeat=len(free))))
    for j, index in enumerate(everything.info):
        block, place = place_of(int(index), width)
        u[:, block] |= bits[:, j] << place
    return u, (1.0 - 2 * items) @ llr / 2


@given(symbol_codes(), st.integers(1, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_the_list_is_the_one_that_sums_over_all_words_give(drawn, list_size, seed):
    """P(symbol | those before it) as a sum over all words of free symbols that begin so."""
    code, _ = drawn
    width = symbol_width(code)
    rng = np.random.default_rng(seed)
    decoder = SymbolDecoder(code, list_size)
    y = 1.5 * (1.0 - 2 * code.encode(rng.integers(0, 2, code.k))) + rng.standard_normal(code.n)
    scale = 1.0
    if decoder.blocks > 1:  # as the decoder's docstring says
        snr = 1.15 * math.sqrt(2 * math.log(2) * code.k)
        noise = math.sqrt(np.mean(y**2) / (1 + snr**2 / code.n))
        scale = 2 * snr / math.sqrt(code.n) / noise
    u, log_p = likelihoods(code, width, scale * y)
    wanted = {}  # item to its u
    books = PolarCode(code.n, code.info, code.dynamic).codebook()
    for number, word in enumerate(symbols_of(books, width)):
        again = word[None].copy()
        half = 1
        while half < again.shape[1]:  # the polar transform of symbols, which is its own inverse
            pairs = again.reshape(-1, 2, half)
            pairs[:, 0] ^= pairs[:, 1]
            half *= 2
        wanted[tuple(again[0])] = number
    paths = [()]
    for block in range(code.n >> width):
        grown = {word[: block + 1] for word in wanted if word[:block] in paths}

        def mass(prefix):
            return np.logaddexp.reduce(log_p[(u[:, : len(prefix)] == prefix).all(axis=1)])

        ranked = sorted(grown, key=lambda prefix: -mass(prefix))
        cut = [mass(prefix) for prefix in ranked]
        if len(cut) > list_size and cut[list_size - 1] - cut[list_size] < 1e-9:
            return  # chance decides
        paths = ranked[:list_size]
    bits, metrics = decoder.decode_list(y)
    found = [int("".join(map(str, row)), 2) for row in bits.tolist()]
    assert found == [wanted[path] for path in paths]
    expected = [-log_p[(u == path).all(axis=1)][0] for path in paths]
    np.testing.assert_allclose(metrics - metrics[0], np.subtract(expected, expected[0]), atol=1e-6)
    np.testing.assert_array_equal(decoder.decode(y), bits[0])


@given(symbol_codes(), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_a_list_of_all_items_is_maximum_likelihood(drawn, seed):
    code, _ = drawn
    rng = np.random.default_rng(seed)
    llr = rng.standard_normal((20, code.n))
    expected = MLDecoder(code).decode(llr)
    np.testing.assert_array_equal(SymbolDecoder(code, 2**code.k).decode(llr), expected)


def test_one_block_is_maximum_likelihood_in_both_precisions():
    code = hadamard_code(8)
    llr = np.random.default_rng(2).standard_normal((500, 256))
    expected = MLDecoder(code).decode(llr)
    for kind in (np.float32, np.float64):
        np.testing.assert_array_equal(SymbolDecoder(code).decode(llr.astype(kind)), expected)
    assert SymbolDecoder(code).decode(np.zeros(256)).tolist() == [0] * 8  # of equals the first


def test_frames_are_decoded_each_by_itself_and_in_any_shape():
    code = code_of_symbols(40, 1024)
    decoder = SymbolDecoder(code, 4)
    rng = np.random.default_rng(3)
    items = rng.integers(0, 2, (50, 40), dtype=np.uint8)
    llr = 1 - 2.0 * code.encode(items) + 3 * rng.standard_normal((50, 1024))
    together = decoder.decode(llr)
    np.testing.assert_array_equal(decoder.decode(1e-3 * llr), together)  # the scale is no matter
    np.testing.assert_array_equal(decoder.decode(llr.reshape(5, 10, -1)).reshape(50, -1), together)
    np.testing.assert_array_equal([decoder.decode(frame) for frame in llr[:10]], together[:10])
    assert decoder.decode(np.zeros((2, 1024))).shape == (2, 40)
    clean = decoder.decode(1 - 2.0 * code.encode(items))
    np.testing.assert_array_equal(clean, items)


def test_it_needs_less_than_bitwise_decoding():
    """False alarm below 1e-6: 50 standard errors and more lie between the two error rates."""
    code = code_of_symbols(64, 1024, 6)
    rng = np.random.default_rng(4)
    items = rng.integers(0, 2, (600, 64), dtype=np.uint8)
    snr = 1.3 * math.sqrt(2 * math.log(2) * 64)
    llr = -(snr * code.signals(items) + rng.standard_normal((600, 1024)))
    ours, bitwise = (
        (decoder.decode(llr) != items).any(axis=1).sum()
        for decoder in (SymbolDecoder(code, 8), SCLDecoder(code, 8))
    )
    assert ours < 0.2 * 600 < 0.6 * 600 < bitwise


def test_the_error_rate_of_one_block_is_that_of_orthogonal_signals():
    """2**k - 1 other correlations, each a normal number: an integral (Proakis, 4-4)."""
    code, snr, trials = hadamard_code(6), 3.0, 20_000
    right = snr * math.sqrt(64 / 63)  # one coordinate is always 0: simplex signals

    def integrand(x):
        return norm.cdf(x) ** 63 * norm.pdf(x - right * math.sqrt(63 / 64) * math.sqrt(64 / 63))

    expected = 1 - quad(integrand, -10, 15)[0]
    rng = np.random.default_rng(5)
    items = rng.integers(0, 2, (trials, 6), dtype=np.uint8)
    y = right * code.signals(items) + rng.standard_normal((trials, 64))
    errors = int((SymbolDecoder(code).decode(-y) != items).any(axis=1).sum())
    low, high = binom.interval(1 - FALSE_ALARM, trials, expected)
    assert low <= errors <= high


def test_energies_say_what_symbols_tell():
    """Nothing is lost by the transform, and the better channel is twice as strong."""
    energies = symbol_energies(8, 6, 50.0)
    assert energies[-1] == 50.0
    assert (np.sort(energies)[:-1] < energies[-1]).all()
    t = energies / (2 * 6 * math.log(2))
    told = -np.expm1(-t - 0.35 * t**2).sum()
    before = 50 / 8 / (12 * math.log(2))
    assert told == pytest.approx(-8 * math.expm1(-before - 0.35 * before**2), rel=1e-9)


def test_the_rule_for_what_a_symbol_tells_is_close_to_simulation():
    """Mutual information of 64 orthogonal signals. Six standard errors, and 0.012 for the rule."""
    rng, most = np.random.default_rng(6), 6 * math.log(2)
    for energy in (0.5, 2.0, 5.0, 10.0, 20.0):
        scores = math.sqrt(energy) * rng.standard_normal((20_000, 64))
        scores[:, 0] += energy
        told = most + scores[:, 0] - np.logaddexp.reduce(scores, axis=1)
        t = energy / (2 * most)
        rule = -math.expm1(-t - 0.35 * t**2)
        error = 6 * told.std() / math.sqrt(len(told)) / most
        assert abs(told.mean() / most - rule) < 0.012 + error


def test_wrong_arguments():
    with pytest.raises(ValueError, match="is not made of symbols"):
        SymbolDecoder(PAPER)
    with pytest.raises(ValueError, match="k = 100: 16 symbols of 6 bits have room for 90"):
        code_of_symbols(100, 1024)
    with pytest.raises(ValueError, match="k = 13: needs a whole number from 1 to 12"):
        hadamard_code(13)
    for bad in (np.inf, np.nan):
        with pytest.raises(ValueError, match="llr holds NaN or infinity"):
            SymbolDecoder(hadamard_code(2)).decode([1.0, bad, 0.0, 0.0])
    with pytest.raises(ValueError, match="list_size = 0"):
        SymbolDecoder(hadamard_code(2), 0)


def test_checks_are_parities_of_information_bits():
    code = with_checks(PolarCode.construct(64, 14), 6)
    assert (code.k, len(code.dynamic)) == (8, 6)
