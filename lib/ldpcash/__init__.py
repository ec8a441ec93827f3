"""Succinct histograms under local differential privacy, with polar codes.

Read the modules in the order in which an item travels: `polar` (bits to codewords), `privacy` (how
much noise), `decode` (noisy averages back to bits).
"""

from ldpcash.decode import MLDecoder, SCLDecoder
from ldpcash.polar import PolarCode
from ldpcash.privacy import (
    gaussian_delta,
    gaussian_sigma,
    keep_probability,
    response_epsilon,
    response_scale,
)

__version__ = "0.1.0"

__all__ = [
    "MLDecoder",
    "PolarCode",
    "SCLDecoder",
    "gaussian_delta",
    "gaussian_sigma",
    "keep_probability",
    "response_epsilon",
    "response_scale",
]
