"""The textbook decoders against the definition of the code and brute force."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import brute_force_ml, codes, received

from ldpcash.codec.textbook import codeword, frozen_bit, list_decode, successive_cancellation


def bits_before_the_transform(code, item):
    """u of an item: every bit in its order, frozen ones too."""
    u, item = [], list(item)
    for frozen in code.frozen:
        u.append(frozen_bit(code, u) if frozen else int(item.pop(0)))
    return u


@given(codes(), st.integers(0, 2**32))
def test_codewords_are_those_of_the_code(code, seed):
    item = np.random.default_rng(seed).integers(0, 2, code.k)
    word = codeword(bits_before_the_transform(code, item))
    np.testing.assert_array_equal(word, code.encode(item))


@given(codes(max_m=4, max_k=6), st.integers(0, 2**32))
def test_a_full_list_is_maximum_likelihood(code, seed):
    _, llr = received(code, 3, 1.5, seed)
    best = [list_decode(frame, code, 2**code.k).best.u for frame in llr]
    np.testing.assert_array_equal(np.array(best)[:, code.info], brute_force_ml(code, llr))


@given(codes(max_m=4, max_k=4), st.booleans(), st.integers(0, 2**32))
def test_a_full_list_has_every_word_once_with_its_own_metric(code, exact, seed):
    """By min-sum, what disagrees; exactly, -log of the word's probability."""
    [llr] = received(code, 1, 1.5, seed)[1]
    paths = list_decode(llr, code, 2**code.k, exact).survivors
    words = [codeword(path.u) for path in paths]
    assert {tuple(word) for word in words} == {tuple(word) for word in code.codebook()}
    assert len(words) == 2**code.k
    against = [(2 * word - 1) * llr for word in words]
    metrics = [np.sum(np.logaddexp(0, x) if exact else np.maximum(0, x)) for x in against]
    np.testing.assert_allclose([path.metric for path in paths], metrics, rtol=1e-9, atol=1e-12)
    assert metrics == sorted(metrics)


@given(codes(max_m=6), st.integers(0, 2**32))
def test_a_list_of_one_is_successive_cancellation(code, seed):
    _, llr = received(code, 3, 1.0, seed)
    llr[0] = np.round(llr[0])  # with zeros and ties
    for frame in llr:
        assert successive_cancellation(frame, code).tolist() == list_decode(frame, code, 1).best.u


@given(codes(max_m=4, max_k=8), st.integers(1, 7), st.integers(0, 2**32))
def test_nothing_changes_within_the_margin(code, list_size, seed):
    """LLRs that are off by less than half of it in all: no metric changes by more."""
    [llr] = received(code, 1, 1.0, seed)[1]
    paths = list_decode(llr, code, list_size)
    if np.isfinite(paths.margin):
        rng = np.random.default_rng(seed)
        off = rng.uniform(-1, 1, code.n) * 0.49 * paths.margin / code.n
        again = list_decode(llr + off, code, list_size)
        assert {tuple(path.u) for path in again.survivors} == {
            tuple(path.u) for path in paths.survivors
        }
