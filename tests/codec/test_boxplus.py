"""Box-plus and the functions behind it against arithmetic with 400 digits."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpcash.codec.boxplus import log1p_exp_minus, log_cosh_half
from ldpcash.codec.list_search import ListSearch


def test_functions_behind_box_plus():
    """Against mpmath, from the smallest arguments to the largest."""
    x = np.concatenate([np.logspace(-150, 2.8, 400), np.linspace(0.9, 1.1, 21), [1e3, 1e300]])
    with mp.workdps(400):
        for value, soft, cosh in zip(x, log1p_exp_minus(x), log_cosh_half(x), strict=True):
            exact = mp.log1p(mp.exp(-mp.mpf(value)))
            assert abs(soft - exact) <= 1e-15 * exact + mp.mpf("1e-300")
            exact = mp.log(mp.cosh(mp.mpf(value) / 2)) if value < 1e4 else mp.mpf(value) / 2
            assert abs(cosh - exact) <= 1e-15 * exact


@given(st.floats(-140, 2.5), st.floats(-1, 1), st.booleans())
def test_box_plus(log_a, log_ratio, negative):
    """Against 2 artanh(tanh(a/2) tanh(b/2)), for LLRs of any size and like each other."""
    a, b = 10**log_a, 10 ** (log_a + log_ratio) * (-1 if negative else 1)
    with mp.workdps(400):
        exact = float(2 * mp.atanh(mp.tanh(mp.mpf(a) / 2) * mp.tanh(mp.mpf(b) / 2)))
    ours = ListSearch(1, 1, True, None)._llr_of_xor(np.array([a]), np.array([b]))[0]
    assert ours == pytest.approx(exact, rel=1e-13)
