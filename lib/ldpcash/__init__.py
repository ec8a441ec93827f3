"""Succinct histograms under local differential privacy, with polar codes.

Read the modules in the order in which an item travels: `polar` (bits to codewords), `privacy` (how
much noise), `decode` (noisy averages back to bits), and `protocols`, which puts them together.
`theory` has the closed forms that simulations are held against.
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
from ldpcash.protocols import Cash, Estimate, Prot, ReportSum

__version__ = "0.1.0"

__all__ = [
    "Cash",
    "Estimate",
    "MLDecoder",
    "PolarCode",
    "Prot",
    "ReportSum",
    "SCLDecoder",
    "gaussian_delta",
    "gaussian_sigma",
    "keep_probability",
    "response_epsilon",
    "response_scale",
]
