"""The maximum-likelihood decoder against brute force and closed forms."""

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from strategies import BIORTHOGONAL, brute_force_ml, codes, received

from ldpcash import MLDecoder, PolarCode, SCLDecoder


@given(codes(max_m=6, max_k=8), st.booleans())
def test_every_code_decodes_itself(code, hard):
    llr = 1 - 2.0 * code.codebook()
    items = np.arange(2**code.k)[:, None] >> np.arange(code.k - 1, -1, -1) & 1
    np.testing.assert_array_equal(MLDecoder(code, hard).decode(llr), items)


def test_block_error_rate_of_the_biorthogonal_code():
    """Within the interval that a correct decoder leaves with probability 1e-6."""
    sigma, frames = 3.6, 100_000
    items, llr = received(BIORTHOGONAL, frames, sigma, 7, np.float32)
    amplitude = np.sqrt(256) / sigma
    exact = (
        1
        - quad(
            lambda x: (
                (2 * scipy.stats.norm.cdf(x) - 1) ** 127 * scipy.stats.norm.pdf(x - amplitude)
            ),
            0,
            amplitude + 12,
            points=[amplitude],
            epsabs=1e-12,
        )[0]
    )
    assert 0.05 < exact < 0.1
    errors = (MLDecoder(BIORTHOGONAL).decode(llr) != items).any(axis=1).sum()
    assert (
        scipy.stats.binom.ppf(5e-7, frames, exact)
        <= errors
        <= scipy.stats.binom.ppf(1 - 5e-7, frames, exact)
    )
    # A list of 8 loses next to nothing here, so it stays inside too.
    errors = (SCLDecoder(BIORTHOGONAL).decode(llr) != items).any(axis=1).sum()
    assert (
        scipy.stats.binom.ppf(5e-7, frames, exact)
        <= errors
        <= scipy.stats.binom.ppf(1 - 5e-7, frames, exact)
    )


class TestTies:
    def test_the_first_item_wins(self):
        code = PolarCode.construct(16, 4)
        assert not MLDecoder(code).decode(np.zeros(16)).any()
        _, llr = received(code, 2000, 2.0, 2)
        signs = np.sign(llr)
        expected = brute_force_ml(code, signs)
        correlations = signs @ (1 - 2.0 * code.codebook().T)
        ties = (correlations == correlations.max(axis=1, keepdims=True)).sum(axis=1) > 1
        assert ties.sum() > 100
        np.testing.assert_array_equal(MLDecoder(code).decode(signs), expected)
        np.testing.assert_array_equal(MLDecoder(code, hard=True).decode(llr), expected)

    @pytest.mark.parametrize("lead", [1e-9, -1e-9, 0.0])
    def test_near_ties_are_settled_beyond_float32(self, lead):
        """Two codewords far ahead of all others, one leading by less than float32 can see."""
        rng = np.random.default_rng(9)
        first, second = signs = 1 - 2.0 * BIORTHOGONAL.codebook()[[5, 77]]
        llr = 3 * signs.sum(axis=0) + rng.standard_normal((300, 256))
        llr = np.round(llr * 2**20) / 2**20  # so that the lead can be made exact
        apart = np.flatnonzero(first != second)[0]
        llr[:, apart] -= (llr @ (first - second) - lead) / (first - second)[apart]
        decoded = MLDecoder(BIORTHOGONAL).decode(llr)
        winner = 77 if lead < 0 else 5
        assert (np.packbits(decoded, axis=1) == winner).all()

    def test_llrs_too_small_for_float32(self):
        code = PolarCode.construct(16, 4)
        _, llr = received(code, 500, 1.5, 3)
        for size in (1e-37, 3e-45, 1e-200):
            decoded = MLDecoder(code).decode(llr * size)
            np.testing.assert_array_equal(decoded, brute_force_ml(code, llr))

    def test_hard_ignores_zeros(self):
        code = PolarCode(4, [3])
        assert MLDecoder(code, hard=True).decode([0.0, 0.0, -0.1, 0.0]).tolist() == [1]
        assert MLDecoder(code, hard=True).decode([5.0, -1.0, -1.0, 0.0]).tolist() == [1]
        assert MLDecoder(code).decode([5.0, -1.0, -1.0, 0.0]).tolist() == [0]


def test_a_code_too_large():
    with pytest.raises(ValueError, match=r"\(1024, 15\).*2\*\*24"):
        MLDecoder(PolarCode.construct(1024, 15))
