"""Checks: parities of information bits that every word keeps."""

import numpy as np
import pytest

from ldpcash import PolarCode
from ldpcash.codec.crc import with_checks


@pytest.mark.parametrize(("checks", "polynomial"), [(6, 0x61), (11, 0xE21), (16, 0x11021)])
def test_item_and_checks_are_a_multiple_of_the_polynomial(checks, polynomial):
    """3GPP TS 38.212, 5.1, by long division."""
    code = with_checks(PolarCode.construct(128, 20 + checks), checks)
    assert (code.k, len(code.dynamic)) == (20, checks)
    inner = PolarCode.construct(128, 20 + checks)
    rng = np.random.default_rng(1)
    for item in rng.integers(0, 2, (20, 20), dtype=np.uint8):
        u = code.encode(item)
        half = 1
        while half < 128:  # back from the codeword to u: G is its own inverse
            pairs = u.reshape(-1, 2, half)
            pairs[:, 0] ^= pairs[:, 1]
            half *= 2
        word = int("".join(map(str, u[inner.info])), 2)
        while word.bit_length() > checks:
            word ^= polynomial << word.bit_length() - 1 - checks
        assert word == 0
