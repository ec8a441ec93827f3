"""Decoders against textbook ones, brute force and closed forms."""

import hashlib
import os
import subprocess
import sys
import tracemalloc

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, norm
from strategies import codes

from ldpcash import MLDecoder, PolarCode, SCLDecoder
from ldpcash.codec.boxplus import log1p_exp_minus, log_cosh_half
from ldpcash.codec.list_search import ListSearch
from ldpcash.codec.textbook import list_decode, successive_cancellation

BIORTHOGONAL = PolarCode(256, [191, 223, 239, 247, 251, 253, 254, 255])


def received(code, frames, sigma, seed, kind=np.float64):
    """Random items and their LLRs on a Gaussian channel, up to scale."""
    rng = np.random.default_rng(seed)
    items = rng.integers(0, 2, (frames, code.k), dtype=np.uint8)
    llr = 1 - 2.0 * code.encode(items) + sigma * rng.standard_normal((frames, code.n))
    return items, llr.astype(kind)


def brute_force_ml(code, llr):
    """The first codeword with the largest correlation, in float64."""
    signs = 1 - 2.0 * code.codebook()
    number = np.array([(signs * frame).sum(axis=1).argmax() for frame in llr])
    return number[:, None] >> np.arange(code.k - 1, -1, -1) & 1


class TestNoiseless:
    @given(codes(), st.sampled_from([1, 2, 3, 8]), st.booleans(), st.integers(0, 2**32))
    def test_every_code_decodes_itself(self, code, list_size, exact, seed):
        items = np.random.default_rng(seed).integers(0, 2, (4, code.k), dtype=np.uint8)
        llr = 4 * (1 - 2.0 * code.encode(items))
        decoder = SCLDecoder(code, list_size, exact)
        np.testing.assert_array_equal(decoder.decode(llr), items)
        bits, metrics = decoder.decode_list(llr)
        np.testing.assert_array_equal(bits[:, 0], items)
        if not exact:
            np.testing.assert_array_equal(metrics[:, 0], 0)

    @pytest.mark.parametrize("n", [512, 1024, 2048, 4096])
    @pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9, 1.0])
    @pytest.mark.parametrize("list_size", [1, 4])
    def test_long_codes(self, n, rate, list_size):
        code = PolarCode.construct(n, max(1, int(rate * n)))
        items, llr = received(code, 3, 0.0, n)
        np.testing.assert_array_equal(SCLDecoder(code, list_size).decode(llr), items)

    @given(codes(max_m=6, max_k=8), st.booleans())
    def test_ml(self, code, hard):
        llr = 1 - 2.0 * code.codebook()
        items = np.arange(2**code.k)[:, None] >> np.arange(code.k - 1, -1, -1) & 1
        np.testing.assert_array_equal(MLDecoder(code, hard).decode(llr), items)


class TestAgainstTextbook:
    @settings(max_examples=150)
    @given(
        codes(max_m=5),
        st.sampled_from([1, 2, 3, 4, 5, 8, 16]),
        st.booleans(),
        st.integers(0, 2**32),
    )
    def test_list(self, code, list_size, exact, seed):
        """Same survivors, same order, same metrics as bit-by-bit list decoding."""
        _, llr = received(code, 2, 1.0, seed)
        bits, metrics = SCLDecoder(code, list_size, exact).decode_list(llr)
        best = SCLDecoder(code, list_size, exact).decode(llr)
        for frame in range(2):
            expected, margin = list_decode(llr[frame], code, list_size, exact)
            assume(margin > 1e-9)
            np.testing.assert_allclose(
                metrics[frame], [metric for _, metric in expected], rtol=1e-9, atol=1e-12
            )
            np.testing.assert_array_equal(
                bits[frame], [np.array(u)[code.info] for u, _ in expected]
            )
            np.testing.assert_array_equal(best[frame], bits[frame, 0])

    @pytest.mark.parametrize("method", ["pw", "rm"])
    @pytest.mark.parametrize("k", [8, 40, 64, 100, 127])
    @pytest.mark.parametrize("exact", [False, True])
    def test_list_on_longer_codes(self, method, k, exact):
        code = PolarCode.construct(128, k, method)
        _, llr = received(code, 1, 0.8, k)
        bits, metrics = SCLDecoder(code, 8, exact).decode_list(llr)
        expected, _ = list_decode(llr[0], code, 8, exact)
        np.testing.assert_allclose(metrics[0], [metric for _, metric in expected], rtol=1e-9)
        np.testing.assert_array_equal(bits[0], [np.array(u)[code.info] for u, _ in expected])

    @pytest.mark.parametrize("list_size", [1, 8])
    def test_more_dynamic_bits_than_a_word_has(self, list_size):
        """A convolution before the polar transform: every later frozen bit is a parity."""
        plain = PolarCode.construct(256, 40, "rm")
        dynamic = {}
        for index in range(plain.info[0] + 1, 256):
            sources = [index - step for step in range(1, 40, 3) if index - step in plain.info]
            if plain.frozen[index] and sources:
                dynamic[index] = sources
        assert len(dynamic) > 64
        code = PolarCode(256, plain.info, dynamic)
        _, llr = received(code, 1, 1.2, 3)
        bits, metrics = SCLDecoder(code, list_size).decode_list(llr)
        expected, _ = list_decode(llr[0], code, list_size, False)
        np.testing.assert_allclose(metrics[0], [metric for _, metric in expected], rtol=1e-9)
        np.testing.assert_array_equal(bits[0], [np.array(u)[code.info] for u, _ in expected])

    @given(codes(), st.integers(0, 2**32))
    def test_a_list_of_one_is_successive_cancellation(self, code, seed):
        _, llr = received(code, 5, 1.0, seed)
        expected = [successive_cancellation(frame, code)[code.info] for frame in llr]
        np.testing.assert_array_equal(SCLDecoder(code, 1).decode(llr), expected)
        bits, _ = SCLDecoder(code, 1).decode_list(llr)
        np.testing.assert_array_equal(bits[:, 0], expected)


class TestLists:
    @pytest.mark.parametrize("exact", [False, True])
    @pytest.mark.parametrize(("n", "k"), [(16, 11), (16, 16), (32, 20), (32, 6)])
    def test_the_best_of_the_list_is_the_answer(self, n, k, exact):
        """Few reliable bits and a short list: where shortcuts to the best path would show."""
        code = PolarCode.construct(n, k)
        _, llr = received(code, 3000, 1.5, n + k)
        decoder = SCLDecoder(code, 2, exact)
        np.testing.assert_array_equal(decoder.decode(llr), decoder.decode_list(llr)[0][:, 0])

    @given(codes(max_m=6), st.integers(1, 20), st.booleans(), st.integers(0, 2**32))
    def test_distinct_and_best_first(self, code, list_size, exact, seed):
        _, llr = received(code, 3, 1.5, seed, np.float32)
        llr[0] = 0  # all metrics equal
        llr[1] = np.sign(llr[1])  # many are
        bits, metrics = SCLDecoder(code, list_size, exact).decode_list(llr)
        width = min(list_size, 2**code.k)
        assert bits.shape == (3, width, code.k)
        assert metrics.shape == (3, width)
        assert (np.diff(metrics, axis=1) >= 0).all()
        for paths in bits:
            assert len({tuple(path) for path in paths.tolist()}) == width

    def test_metric_is_the_disagreement(self):
        code = PolarCode.construct(32, 10)
        _, llr = received(code, 50, 1.0, 1)
        bits, metrics = SCLDecoder(code, 4).decode_list(llr)
        wrong = code.encode(bits) != (llr < 0)[:, None]
        np.testing.assert_allclose(metrics, (wrong * abs(llr)[:, None]).sum(axis=-1))
        bits, metrics = SCLDecoder(code, 4, exact=True).decode_list(llr)
        sign = 1 - 2.0 * code.encode(bits)
        np.testing.assert_allclose(
            metrics, np.logaddexp(0, -sign * llr[:, None]).sum(axis=-1), rtol=1e-13
        )


class TestAgainstML:
    @given(codes(max_m=6, max_k=7), st.integers(0, 2**32))
    def test_a_full_list_is_ml(self, code, seed):
        _, llr = received(code, 20, 1.5, seed)
        full = SCLDecoder(code, 2**code.k).decode(llr)
        np.testing.assert_array_equal(full, brute_force_ml(code, llr))
        np.testing.assert_array_equal(MLDecoder(code).decode(llr), full)

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_a_list_of_eight_is_ml_on_the_paper_s_code(self, kind):
        code = PolarCode.construct(64, 8)
        _, llr = received(code, 20_000, 2.0, 5, kind)
        np.testing.assert_array_equal(SCLDecoder(code).decode(llr), MLDecoder(code).decode(llr))

    def test_block_error_rate_of_the_biorthogonal_code(self):
        """Within the interval that a correct decoder leaves with probability 1e-6."""
        sigma, frames = 3.6, 100_000
        items, llr = received(BIORTHOGONAL, frames, sigma, 7, np.float32)
        amplitude = np.sqrt(256) / sigma
        exact = (
            1
            - quad(
                lambda x: (2 * norm.cdf(x) - 1) ** 127 * norm.pdf(x - amplitude),
                0,
                amplitude + 12,
                points=[amplitude],
                epsabs=1e-12,
            )[0]
        )
        assert 0.05 < exact < 0.1
        errors = (MLDecoder(BIORTHOGONAL).decode(llr) != items).any(axis=1).sum()
        assert binom.ppf(5e-7, frames, exact) <= errors <= binom.ppf(1 - 5e-7, frames, exact)
        # A list of 8 loses next to nothing here, so it stays inside too.
        errors = (SCLDecoder(BIORTHOGONAL).decode(llr) != items).any(axis=1).sum()
        assert binom.ppf(5e-7, frames, exact) <= errors <= binom.ppf(1 - 5e-7, frames, exact)


class TestMLTies:
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


DECODERS = {
    "min-sum": lambda code: SCLDecoder(code, 4),
    "exact": lambda code: SCLDecoder(code, 4, exact=True),
    "sc": lambda code: SCLDecoder(code, 1),
    "ml": MLDecoder,
    "hard ml": lambda code: MLDecoder(code, hard=True),
}


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.filterwarnings("error")
class TestOddInputs:
    code = PolarCode.construct(32, 6)

    @pytest.mark.parametrize(
        ("kind", "size"),
        [(np.float32, size) for size in (np.inf, 1e38, 1e29, 1e-29, 1e-40)]
        + [(np.float64, size) for size in (np.inf, 1e308, 1e100, 1e29, 1e-29, 1e-310, 5e-324)],
    )
    def test_extreme_sizes(self, name, kind, size):
        items, llr = received(self.code, 20, 0.0, 1, kind)
        decoded = DECODERS[name](self.code).decode(llr * kind(size))
        if name == "exact" and size < 1e-100:
            assert decoded.shape == items.shape  # products of such LLRs are 0: nothing to decode
        else:
            np.testing.assert_array_equal(decoded, items)

    def test_zeros(self, name):
        decoded = DECODERS[name](self.code).decode(np.zeros((3, 32)))
        assert decoded.shape == (3, 6)
        assert (decoded <= 1).all()

    @pytest.mark.parametrize("known", [1e3, 1e6, 1e10, 1e18, 1e29, 1e31, np.inf])
    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_known_bits_do_not_drown_the_others(self, name, known, kind):
        """Two bits known, the rest as usual: the same answers however large their LLRs are."""
        items, llr = received(self.code, 200, 0.7, 2, kind)
        right = np.where(self.code.encode(items)[:, [5, 20]], -1, 1).astype(kind)
        llr[:, [5, 20]] = 100 * right
        expected = DECODERS[name](self.code).decode(llr)
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

    @pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3), (2, 0)])
    def test_shapes(self, name, shape):
        decoded = DECODERS[name](self.code).decode(np.ones((*shape, 32)))
        assert decoded.shape == (*shape, 6)
        assert decoded.dtype == np.uint8

    @pytest.mark.parametrize("llr", [np.ones(31), np.ones((32, 1)), 1.0])
    def test_wrong_width(self, name, llr):
        with pytest.raises(ValueError, match=r"llr has shape .*must be n = 32"):
            DECODERS[name](self.code).decode(llr)

    def test_wrong_type(self, name):
        with pytest.raises(ValueError, match="llr has type complex128"):
            DECODERS[name](self.code).decode(np.ones(32, dtype=complex))

    @pytest.mark.parametrize("kind", [np.int8, np.int64, np.float16, bool])
    def test_other_number_types(self, name, kind):
        llr = np.ones(32, dtype=kind)
        assert not DECODERS[name](self.code).decode(llr).any()


class TestListMetricsOfOddInputs:
    @pytest.mark.parametrize("value", [np.inf, -np.inf, 1e308, 0.0, 5e-324])
    @pytest.mark.parametrize("exact", [False, True])
    def test_finite(self, value, exact):
        bits, metrics = SCLDecoder(PolarCode.construct(32, 6), 8, exact).decode_list(
            np.where(np.arange(32) % 5, value, -value)
        )
        assert np.isfinite(metrics).all()
        assert bits.shape == (8, 6)

    def test_a_known_bit_costs_nothing_where_it_agrees(self):
        decoder = SCLDecoder(PolarCode(2, [0, 1]), 4, exact=True)
        _, metrics = decoder.decode_list([np.inf, 1.0])
        np.testing.assert_allclose(metrics[:2], np.log1p(np.exp([-1.0, 1.0])), rtol=1e-12)


class TestArguments:
    @pytest.mark.parametrize("list_size", [0, -1, 1.5])
    def test_list_size(self, list_size):
        with pytest.raises(ValueError, match=r"list_size = .*whole number from 1"):
            SCLDecoder(PolarCode.construct(8, 4), list_size)

    def test_ml_of_a_code_too_large(self):
        with pytest.raises(ValueError, match=r"\(1024, 15\).*2\*\*24"):
            MLDecoder(PolarCode.construct(1024, 15))


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


def fingerprint():
    """A hash of many decisions by every decoder, close calls and exact ties included."""
    digest = hashlib.sha256()
    for code, sigma in [
        (PolarCode.construct(64, 8), 2.5),
        (BIORTHOGONAL, 4.5),
        (PolarCode.construct(128, 64), 0.9),
    ]:
        for kind in (np.float32, np.float64):
            _, llr = received(code, 1500, sigma, 11, kind)
            llr[::3] = np.round(llr[::3])
            for decoder in (SCLDecoder(code), SCLDecoder(code, 3, exact=True)):
                few = llr[:300] if decoder.exact else llr
                digest.update(decoder.decode(few).tobytes())
                bits, metrics = decoder.decode_list(few)
                digest.update(bits.tobytes() + metrics.tobytes())
            if code.k == 8:
                digest.update(MLDecoder(code).decode(llr).tobytes())
    return digest.hexdigest()


class TestSameEverywhere:
    @pytest.mark.parametrize("name", DECODERS)
    def test_chunks_and_order(self, name):
        code = PolarCode.construct(64, 8)
        _, llr = received(code, 700, 2.0, 4)
        llr[::7] *= 1e-35
        llr[::11, 3] = np.inf
        llr[::5] = np.sign(llr[::5])
        decoder = DECODERS[name](code)
        expected = decoder.decode(llr)
        shuffled = np.random.default_rng(0).permutation(700)
        for frames in (1, 13, 512, 10_000):
            decoder.frames_per_chunk = frames
            np.testing.assert_array_equal(decoder.decode(llr), expected)
            np.testing.assert_array_equal(decoder.decode(llr[shuffled]), expected[shuffled])

    def test_threads_and_vector_features(self):
        """Another process, without the CPU features that NumPy chooses its loops by."""
        from numpy._core import _multiarray_umath as core

        features = " ".join(f for f in core.__cpu_dispatch__ if core.__cpu_features__[f])
        here = os.path.dirname(os.path.abspath(__file__))
        program = "import test_decode; print(test_decode.fingerprint())"
        results = set()
        for changes in (
            {},
            {"NPY_DISABLE_CPU_FEATURES": features},
            {"OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Nehalem"},
        ):
            result = subprocess.run(
                [sys.executable, "-c", program],
                cwd=here,
                env={**os.environ, **changes},
                capture_output=True,
                text=True,
                check=True,
            )
            assert not result.stderr
            results.add(result.stdout)
        assert len(results) == 1

    @pytest.mark.parametrize(("n", "k", "list_size"), [(64, 8, 8), (4096, 2048, 2), (256, 128, 64)])
    def test_memory_does_not_grow_with_the_batch(self, n, k, list_size):
        code = PolarCode.construct(n, k)
        decoder = SCLDecoder(code, list_size)
        frames = 3 * decoder.frames_per_chunk
        llr = np.ones((frames, n), dtype=np.float32)
        tracemalloc.start()
        decoder.decode(llr[: decoder.frames_per_chunk])
        one_chunk = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        decoder.decode(llr)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert one_chunk < 2**29
        assert peak < 1.5 * one_chunk + frames * k

    @pytest.mark.parametrize(
        ("decode", "frames"),
        [
            (SCLDecoder(PolarCode.construct(4096, 8), 256).decode_list, 300),
            (MLDecoder(PolarCode.construct(64, 14)).decode, 600),
        ],
    )
    def test_memory_stays_below_half_a_gibibyte(self, decode, frames):
        """Also where the work behind a decision is largest: long codewords, all codewords tied."""
        llr = np.zeros((frames, decode.__self__.code.n), dtype=np.float32)
        tracemalloc.start()
        decode(llr)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**29
