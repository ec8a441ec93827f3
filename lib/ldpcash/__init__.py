"""Succinct histograms under local differential privacy, with polar codes.

Read the modules in the order in which an item travels: `polar` (bits to codewords), `privacy` (how
much noise), `noise` (how it is drawn), `decode` (noisy averages back to bits), and `protocols`,
which puts them together. `histogram` is the same for clients that hold any item (`packing`,
`hashing`, `channels`, `symbols`, `plan`, `wire`, `discover`). `simulate` and `sweeps` run protocols
in large numbers, and `theory` has the closed forms that this is held against.

The rest can wait: `store`, `workers` and `progress` serve `sweeps`; `experiments`, `ledger`,
`claims` and `figures` serve the notebooks; and `beyond` has what the paper does not.
"""

from ldpcash.decode import MLDecoder, SCLDecoder
from ldpcash.histogram import Collector, Entry, succinct_histogram
from ldpcash.packing import Packing
from ldpcash.plan import Plan
from ldpcash.polar import PolarCode
from ldpcash.privacy import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
    keep_probability,
    keep_threshold,
    response_scale,
)
from ldpcash.protocols import Cash, Estimate, Prot, ReportSum, holders
from ldpcash.simulate import Point, Row, columns
from ldpcash.sweeps import SweepError, sweep

__version__ = "1.0.0"

__all__ = [
    "Cash",
    "Collector",
    "Entry",
    "Estimate",
    "MLDecoder",
    "Packing",
    "Plan",
    "Point",
    "PolarCode",
    "Prot",
    "ReportSum",
    "Row",
    "SCLDecoder",
    "SweepError",
    "columns",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "holders",
    "keep_probability",
    "keep_threshold",
    "response_scale",
    "succinct_histogram",
    "sweep",
]
