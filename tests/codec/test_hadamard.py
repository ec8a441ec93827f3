"""Codes of symbols: their words against the definition, and the rule that chooses them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import PAPER, symbol_codes

from ldpcash import PolarCode
from ldpcash.codec.hadamard import (
    code_of_symbols,
    hadamard_code,
    place_of,
    symbol_energies,
    symbol_width,
    symbols_of,
    walsh_hadamard,
)


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
    with pytest.raises(ValueError, match="k = 100: 16 symbols of 6 bits have room for 90"):
        code_of_symbols(100, 1024)
    with pytest.raises(ValueError, match="k = 17: needs a whole number from 1 to 16"):
        hadamard_code(17)
