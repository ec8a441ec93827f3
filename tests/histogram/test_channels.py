"""What both kinds of channels have in common."""

import numpy as np
import pytest
from strategies import TINY

from ldpcash import PolarCode
from ldpcash.codec.hadamard import code_of_symbols, hadamard_code
from ldpcash.histogram.cash_channels import CashChannels
from ldpcash.histogram.prot_channels import ProtChannels

KINDS = {
    "signs": ProtChannels(PolarCode.construct(16, 5), 1.0, 2),
    "signs that repeat": ProtChannels(PolarCode(16, [12, 14]), 1.0, 2),
    "symbols": ProtChannels(hadamard_code(4), 1.0, 4, 4),
    "views of symbols": ProtChannels(hadamard_code(4), 1.0, 4, 2),
    "symbols of several blocks": ProtChannels(code_of_symbols(6, 64, 4), 1.0, 4, 4),
    "numbers": CashChannels(PolarCode.construct(16, 5), 1.0, 2),
    "numbers that repeat": CashChannels(PolarCode(16, [12, 14]), 1.0, 2),
}


@pytest.mark.parametrize("channels", KINDS.values(), ids=KINDS)
def test_alike_is_the_mean_square_of_all_correlations(channels):
    """Of all pairs of codewords, in the coordinates that carry something."""
    signs = (2.0 * channels.code.codebook() - 1)[:, channels.live]
    correlations = signs @ signs.T / channels.live.sum()
    assert channels.alike == pytest.approx(np.square(correlations).mean())


@pytest.mark.parametrize("channels", KINDS.values(), ids=KINDS)
def test_no_reports_are_no_sums(channels):
    empty = channels.empty()
    assert (empty.shape, empty.dtype) == (channels.shape, channels.kind)
    assert not empty.any()
    assert channels.empty() is not empty


@pytest.mark.parametrize("kind", [ProtChannels, CashChannels])
@pytest.mark.parametrize(
    ("epsilon", "count", "message"),
    [
        (0, 2, "epsilon = 0: needs a positive number"),
        (None, 2, "epsilon = None: needs a number"),
        (1.0, 0, "count = 0: needs a whole number from 1 to 16384"),
        (1.0, 12, "count = 12: channels need a power of two"),
        (1.0, 2**15, "count = 32768: needs"),
    ],
)
def test_wrong_arguments(kind, epsilon, count, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        kind(TINY, epsilon, count)
