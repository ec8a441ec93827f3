"""Succinct histograms under local differential privacy, with polar codes.

Eight rooms, in the order in which one would explain them; each imports only from those before it::

    base        checks, array helpers, workers, files
    codec       polar codes and their decoders
    privacy     how much noise a promise costs, and how it is drawn
    protocols   the paper's protocol, `Cash`, the baseline, `Prot`, and better ones, `Blank` first
    histogram   many items: the general succinct histogram
    simulation  Monte Carlo sweeps
    paper       closed forms, experiments, ledger and figures of the notebooks
    beyond      what the paper does not have

Small as it is, `codec`, `privacy` and `protocols` are the paper. What most users need is here:
"""

from ldpcash.codec.hadamard import code_of_symbols, hadamard_code
from ldpcash.codec.ml import MLDecoder
from ldpcash.codec.polar import PolarCode
from ldpcash.codec.scl import SCLDecoder
from ldpcash.codec.symbol_decoder import SymbolDecoder
from ldpcash.histogram.collector import Collector, Entry
from ldpcash.histogram.packing import Packing
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.population import draw_collector, succinct_histogram
from ldpcash.privacy.calibration import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
    keep_probability,
    keep_threshold,
    response_scale,
)
from ldpcash.protocols.blank import Blank
from ldpcash.protocols.cash import Cash
from ldpcash.protocols.direct import KaryResponse, LocalHashing, SubsetSelection
from ldpcash.protocols.laws import holders
from ldpcash.protocols.prot import Prot
from ldpcash.protocols.protocol import Estimate, Protocol, ReportSum
from ldpcash.simulation.points import PROTOCOLS, Point, parameters_of
from ldpcash.simulation.sweeps import SweepError, sweep
from ldpcash.simulation.trials import Row, columns

__version__ = "1.0.0"

__all__ = [
    "PROTOCOLS",
    "Blank",
    "Cash",
    "Collector",
    "Entry",
    "Estimate",
    "KaryResponse",
    "LocalHashing",
    "MLDecoder",
    "Packing",
    "Plan",
    "Point",
    "PolarCode",
    "Prot",
    "Protocol",
    "ReportSum",
    "Row",
    "SCLDecoder",
    "SubsetSelection",
    "SweepError",
    "SymbolDecoder",
    "code_of_symbols",
    "columns",
    "draw_collector",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "hadamard_code",
    "holders",
    "keep_probability",
    "keep_threshold",
    "parameters_of",
    "response_scale",
    "succinct_histogram",
    "sweep",
]
