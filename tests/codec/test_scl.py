"""The fast list decoder against the textbook one and maximum likelihood."""

import hashlib
import os
import subprocess
import sys
import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import BIORTHOGONAL, DECODERS, brute_force_ml, codes, received

from ldpcash import MLDecoder, PolarCode, SCLDecoder
from ldpcash.codec.textbook import list_decode, successive_cancellation


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

    def test_long_codes(self, subtests):
        for n, rate in product([512, 1024, 2048, 4096], [0.0, 0.1, 0.5, 0.9, 1.0]):
            code = PolarCode.construct(n, max(1, int(rate * n)))
            items, llr = received(code, 3, 0.0, n)
            for list_size in (1, 4):
                with subtests.test(n=n, rate=rate, list_size=list_size):
                    np.testing.assert_array_equal(SCLDecoder(code, list_size).decode(llr), items)


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

    @pytest.mark.parametrize("exact", [False, True])
    def test_list_on_longer_codes(self, exact, subtests):
        for method, k in product(["pw", "rm"], [8, 40, 64, 100, 127]):
            with subtests.test(method=method, k=k):
                code = PolarCode.construct(128, k, method)
                _, llr = received(code, 1, 0.8, k)
                bits, metrics = SCLDecoder(code, 8, exact).decode_list(llr)
                expected, _ = list_decode(llr[0], code, 8, exact)
                items = [np.array(u)[code.info] for u, _ in expected]
                np.testing.assert_allclose(
                    metrics[0], [path.metric for path in expected], rtol=1e-9
                )
                np.testing.assert_array_equal(bits[0], items)

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
    def test_the_best_of_the_list_is_the_answer(self, exact, subtests):
        """Few reliable bits and a short list: where shortcuts to the best path would show."""
        for n, k in [(16, 11), (16, 16), (32, 20), (32, 6)]:
            with subtests.test(n=n, k=k):
                _, llr = received(PolarCode.construct(n, k), 3000, 1.5, n + k)
                decoder = SCLDecoder(PolarCode.construct(n, k), 2, exact)
                best = decoder.decode_list(llr)[0][:, 0]
                np.testing.assert_array_equal(decoder.decode(llr), best)

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


class TestArguments:
    @pytest.mark.parametrize("list_size", [0, -1, 1.5])
    def test_list_size(self, list_size):
        with pytest.raises(ValueError, match=r"list_size = .*whole number from 1"):
            SCLDecoder(PolarCode.construct(8, 4), list_size)


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
        program = "import sys; sys.path.append('..'); import test_scl as s; print(s.fingerprint())"
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

    @pytest.mark.parametrize("kind", [SCLDecoder, MLDecoder])
    def test_memory_stays_below_half_a_gibibyte(self, kind):
        """Also where the work behind a decision is largest: long codewords, all codewords tied."""
        if kind is SCLDecoder:
            decode, frames = SCLDecoder(PolarCode.construct(4096, 8), 256).decode_list, 300
        else:
            decode, frames = MLDecoder(PolarCode.construct(64, 14)).decode, 600
        llr = np.zeros((frames, decode.__self__.code.n), dtype=np.float32)
        tracemalloc.start()
        decode(llr)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**29
