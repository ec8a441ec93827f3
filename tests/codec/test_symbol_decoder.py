"""The decoder of symbols: what it finds against sums over all words, and closed forms."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, norm
from strategies import FALSE_ALARM, PAPER, symbol_codes

from ldpcash import MLDecoder, PolarCode, SCLDecoder
from ldpcash.codec.hadamard import (
    code_of_symbols,
    hadamard_code,
    place_of,
    symbol_width,
    symbols_of,
    walsh_hadamard,
)
from ldpcash.codec.symbol_decoder import SymbolDecoder


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
        near = [1e-5 * math.exp(cut[0] - one) for one in cut]  # single precision, of the likeliest
        gaps = np.subtract(cut[:-1], cut[1:])[:list_size]
        if (gaps < near[1 : len(gaps) + 1]).any():
            return  # rounding decides
        paths = ranked[:list_size]
    bits, metrics = decoder.decode_list(y)
    found = [int("".join(map(str, row)), 2) for row in bits.tolist()]
    assert found == [wanted[path] for path in paths]
    expected = [-log_p[(u == path).all(axis=1)][0] for path in paths]
    more = np.subtract(expected, expected[0])
    assert (np.abs(metrics - metrics[0] - more) <= 1e-5 * np.exp(more)).all()
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


def test_long_blocks_of_many_bits():
    """The longest code: 64 symbols of 8 bits."""
    code = code_of_symbols(128, 2**14, 8)
    assert (code.n, code.k, symbol_width(code)) == (2**14, 128, 8)
    items = np.random.default_rng(8).integers(0, 2, (3, 128), dtype=np.uint8)
    np.testing.assert_array_equal(
        SymbolDecoder(code, 4).decode(1 - 2.0 * code.encode(items)), items
    )


def test_frames_are_decoded_each_by_itself_and_in_any_shape():
    code = code_of_symbols(40, 1024)
    decoder = SymbolDecoder(code, 4)
    rng = np.random.default_rng(3)
    items = rng.integers(0, 2, (50, 40), dtype=np.uint8)
    llr = 1 - 2.0 * code.encode(items) + 3 * rng.standard_normal((50, 1024))
    together = decoder.decode(llr)
    for scale in (1e-300, 1e-3, 1e300):  # which is no matter
        np.testing.assert_array_equal(decoder.decode(scale * llr), together)
    single = llr.astype(np.float32)
    huge = np.float32(2.0**120) * single
    np.testing.assert_array_equal(decoder.decode(huge), decoder.decode(single))
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


def test_one_block_of_huge_llrs():
    code = hadamard_code(8)
    items = np.random.default_rng(9).integers(0, 2, (20, 8), dtype=np.uint8)
    llr = 1 - 2.0 * code.encode(items)
    for huge in (1e308 * llr, np.float32(3e38) * llr.astype(np.float32)):
        np.testing.assert_array_equal(SymbolDecoder(code).decode(huge), items)


def test_of_equal_paths_the_first_survive():
    """The same on every CPU: no sorting algorithm decides. All are equal; the first items stay."""
    bits, metrics = SymbolDecoder(PolarCode(8, [1, 2, 5, 6]), 4).decode_list(np.zeros(8))
    assert len({*metrics.tolist()}) == 1
    assert [int("".join(map(str, row)), 2) for row in bits.tolist()] == [0, 1, 2, 3]


def test_wrong_arguments():
    with pytest.raises(ValueError, match="is not made of symbols"):
        SymbolDecoder(PAPER)
    for bad in (np.inf, np.nan):
        with pytest.raises(ValueError, match="llr holds NaN or infinity"):
            SymbolDecoder(hadamard_code(2)).decode([1.0, bad, 0.0, 0.0])
    with pytest.raises(ValueError, match="list_size = 0"):
        SymbolDecoder(hadamard_code(2), 0)


def test_coordinates_that_nobody_reported_are_no_evidence_of_little_noise():
    """The scale of the LLRs comes from those that are there."""
    code = code_of_symbols(40, 1024)
    decoder = SymbolDecoder(code)
    rng = np.random.default_rng(5)
    llr = rng.standard_normal((2, 1024))
    llr[1] *= rng.random(1024) < 0.25
    scores = decoder._symbols(llr)
    size = 2**decoder.width
    used = 2 / size * walsh_hadamard(scores.copy()).transpose(2, 0, 1)[:, :, ::-1].reshape(2, -1)
    live = np.count_nonzero(llr, axis=1)
    snr = 1.15 * math.sqrt(2 * math.log(2) * code.k)
    noise = np.sqrt((llr**2).sum(axis=1) / live / (1 + snr**2 / live))
    wanted = llr * (2 * snr / np.sqrt(live) / noise)[:, None]
    np.testing.assert_allclose(used, wanted, atol=1e-4)
