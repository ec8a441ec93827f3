"""The compiled walk against the one in NumPy: the same decisions, to the last bit.

Without Numba the same functions run as plain Python, so that this file holds them to the same.
"""

import builtins
import importlib.util
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import BIORTHOGONAL, PAPER, codes, received, symbol_codes

from ldpcash import PolarCode, SCLDecoder
from ldpcash.codec import compiled

NUMBA = compiled.numba is not None
LISTS = [1, 2, 3, 8, 32, 128]
KINDS = ["noisy", "whole", "huge", "tiny", "zero", "infinite"]


def programs(decoder, module=compiled):
    arguments = decoder._root, decoder.list_size, decoder._parities
    return {best: module.Program(*arguments, best) for best in (False, True)}


def pair(code, list_size, module=compiled):
    """The reference, and a decoder that takes compiled steps however short the code is."""
    reference, fast = SCLDecoder(code, list_size), SCLDecoder(code, list_size)
    reference._programs, fast._programs = None, programs(fast, module)
    return reference, fast


def check(code, list_size, llr, module=compiled):
    reference, fast = pair(code, list_size, module)
    best = fast.decode(llr)
    assert best.dtype == np.uint8
    np.testing.assert_array_equal(best, reference.decode(llr))
    bits, metrics = fast.decode_list(llr)
    expected, expected_metrics = reference.decode_list(llr)
    np.testing.assert_array_equal(bits, expected)
    np.testing.assert_array_equal(metrics, expected_metrics)


def llrs(code, frames, kind, seed, dtype):
    """LLRs of random items: as they come, or such that many scores are equal or rounded."""
    _, llr = received(code, frames, 1.2, seed)
    rng = np.random.default_rng(seed)
    if kind == "whole":
        llr = np.round(2 * llr)
    elif kind == "huge":
        llr *= 10.0 ** rng.integers(0, 31, (frames, 1))
    elif kind == "tiny":
        llr *= 1e-30
    elif kind == "zero":
        llr[rng.random(llr.shape) < 0.6] = 0
        llr[0] = -0.0
    elif kind == "infinite":
        llr[rng.random(llr.shape) < 0.2] *= np.inf
    return llr.astype(dtype)


class TestTheSameDecisions:
    @settings(max_examples=200 if NUMBA else 40)
    @given(
        codes(max_m=7 if NUMBA else 4),
        st.sampled_from(LISTS if NUMBA else LISTS[:4]),
        st.integers(1, 40 if NUMBA else 3),
        st.sampled_from(KINDS),
        st.sampled_from([np.float32, np.float64]),
        st.integers(0, 2**32),
    )
    def test_every_code(self, code, list_size, frames, kind, dtype, seed):
        check(code, list_size, llrs(code, frames, kind, seed, dtype))

    @settings(max_examples=60 if NUMBA else 10)
    @given(symbol_codes(), st.sampled_from(LISTS[:4]), st.integers(0, 2**32))
    def test_codes_of_symbols(self, drawn, list_size, seed):
        check(drawn[0], list_size, llrs(drawn[0], 5, "whole", seed, np.float32))

    @pytest.mark.parametrize("kind", KINDS)
    def test_longer_codes(self, kind, subtests):
        """Words of more than 32 bits, free nodes on the way, lists that fill up slowly."""
        sizes = [(256, 128), (512, 40), (256, 230)] if NUMBA else [(128, 100)]
        for (n, k), list_size in product(sizes, [2, 8, 128] if NUMBA else [2]):
            with subtests.test(n=n, k=k, list_size=list_size):
                code = PolarCode.construct(n, k)
                check(code, list_size, llrs(code, 20 if NUMBA else 2, kind, k, np.float32))

    def test_more_dynamic_bits_than_a_word_has(self):
        plain = PolarCode.construct(256, 40, "rm")
        dynamic = {
            index: sources
            for index in range(256)
            if plain.frozen[index]
            and (sources := [i for i in plain.info.tolist() if index - 40 < i < index][::3])
        }
        assert len(dynamic) > 64
        code = PolarCode(256, plain.info, dynamic)
        for list_size in (1, 8) if NUMBA else (2,):
            check(code, list_size, llrs(code, 8 if NUMBA else 1, "noisy", 3, np.float64))

    @pytest.mark.parametrize("code", [PAPER, BIORTHOGONAL], ids=["paper", "biorthogonal"])
    def test_short_codes(self, code):
        frames = 2000 if NUMBA else 5
        check(code, 8, np.round(llrs(code, frames, "noisy", 1, np.float32)))

    def test_ties_of_all(self):
        """With nothing received the first items survive, in their order."""
        code = PolarCode.construct(32, 12)
        _, fast = pair(code, 8)
        bits, metrics = fast.decode_list(np.zeros((3, 32), dtype=np.float32))
        reference, _ = SCLDecoder(code, 8).decode_list(np.zeros((3, 32), dtype=np.float32))
        np.testing.assert_array_equal(bits, reference)
        assert not metrics.any()

    @pytest.mark.parametrize("frames", [1, 127, 128, 129, 300] if NUMBA else [1, 3])
    def test_blocks_of_frames(self, frames):
        code = PolarCode.construct(64, 30)
        check(code, 4, llrs(code, frames, "whole", frames, np.float32))

    def test_blocks_that_memory_makes_small(self, monkeypatch):
        code = PolarCode.construct(64, 30)
        for values in (1, 64 * 4 * 3):  # one frame, and three
            monkeypatch.setattr(compiled, "_VALUES", values)
            check(code, 4, llrs(code, 10 if NUMBA else 4, "whole", 1, np.float32))


class TestWhichWay:
    LONG = PolarCode.construct(128, 64)

    @pytest.mark.skipif(not NUMBA, reason="Numba is not installed")
    def test_long_codes_are_compiled(self):
        assert SCLDecoder(self.LONG)._programs
        assert hasattr(compiled._walk, "py_func")

    def test_short_codes_and_exact_ones_are_not(self):
        assert SCLDecoder(PAPER)._programs is None
        assert SCLDecoder(BIORTHOGONAL)._programs is None
        assert SCLDecoder(self.LONG, exact=True)._programs is None

    def test_without_numba(self, monkeypatch):
        """NumPy decides, and the steps are what they were, only slow."""
        real = builtins.__import__

        def no_numba(name, *arguments, **options):
            if name.split(".")[0] == "numba":
                raise ImportError(name)
            return real(name, *arguments, **options)

        monkeypatch.setattr(builtins, "__import__", no_numba)
        spec = importlib.util.spec_from_file_location("without_numba", compiled.__file__)
        plain = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(plain)
        monkeypatch.undo()
        assert plain.numba is None
        for code, list_size in [
            (PAPER, 4),
            (PolarCode(16, [3, 5, 9, 12, 15], {10: [3, 5], 14: [12]}), 2),
        ]:
            check(code, list_size, llrs(code, 3, "whole", 0, np.float32), plain)

        monkeypatch.setattr(compiled, "numba", None)
        decoder = SCLDecoder(self.LONG)
        assert decoder._programs is None
        items, llr = received(self.LONG, 5, 0.1, 0)
        np.testing.assert_array_equal(decoder.decode(llr), items)

    def test_numba_is_not_imported_before_it_is_needed(self):
        program = (
            "import sys, numpy as np\n"
            "from ldpcash import PolarCode, SCLDecoder\n"
            "SCLDecoder(PolarCode.construct(1024, 512))\n"
            "SCLDecoder(PolarCode.construct(64, 8)).decode(np.ones(64))\n"
            "assert 'numba' not in sys.modules\n"
        )
        subprocess.run([sys.executable, "-c", program], check=True)
