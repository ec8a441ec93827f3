"""What several test files share: random codes for property tests, and examples."""

import numpy as np
from hypothesis import strategies as st

from ldpcash import MLDecoder, Packing, PolarCode, SCLDecoder
from ldpcash.histogram.packing import LATIN

FALSE_ALARM = 1e-6  # of statistical tests, at most

PAPER = PolarCode.construct(64, 8)
ITEM = np.array([1, 0, 1, 1, 0, 0, 1, 0], dtype=np.uint8)
BIORTHOGONAL = PolarCode(256, [191, 223, 239, 247, 251, 253, 254, 255])
TINY = PolarCode(2, [0, 1])

DECODERS = {
    "min-sum": lambda code: SCLDecoder(code, 4),
    "exact": lambda code: SCLDecoder(code, 4, exact=True),
    "sc": lambda code: SCLDecoder(code, 1),
    "ml": MLDecoder,
    "hard ml": lambda code: MLDecoder(code, hard=True),
}

NAMES = Packing(20, LATIN)
BITS = NAMES.pack(["ANNA", "BOB", "CAY", "DORA"])
COUNTS = np.array([9000, 6000, 4000, 30])
OPTIONS = [  # of plans
    {},
    {"width": 1},
    {"width": 10},
    {"empty": 0.9, "width": 2},
    {"width": 1, "decision": "hard"},
    {"protocol": "Cash", "count": 16},
]


@st.composite
def codes(draw, max_m=7, max_k=128):
    """Any code, with any dynamic frozen bits."""
    n = 2 ** draw(st.integers(0, max_m))
    k = draw(st.integers(1, min(n, max_k)))
    order = draw(st.permutations(range(n)))
    info, frozen = order[:k], order[k:]
    dynamic = {}
    for index in frozen[: draw(st.integers(0, len(frozen)))]:
        sources = [source for source in info if source < index]
        if sources:
            dynamic[index] = sources[: draw(st.integers(1, len(sources)))]
    return PolarCode(n, info, dynamic)


@st.composite
def symbol_codes(draw):
    """Any code of up to 4 symbols of 2 or 3 bits, with any dynamic frozen bits."""
    width, levels = draw(st.integers(2, 3)), draw(st.integers(0, 2))
    size, blocks = 2**width, 2**levels
    allowed = [size * (b + 1) - 1 - 2**p for b in range(blocks) for p in range(width)]
    allowed = draw(st.permutations(allowed))
    k = draw(st.integers(1, min(6, len(allowed))))
    info, frozen = allowed[:k], allowed[k:]
    dynamic = {}
    for index in frozen[: draw(st.integers(0, len(frozen)))]:
        sources = [source for source in info if source < index]
        if sources:
            dynamic[index] = sources[: draw(st.integers(1, len(sources)))]
    return PolarCode(size * blocks, info, dynamic), width


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


def discrete_masses(scale, reach):
    """Probabilities of -reach to reach, in as many digits as mpmath works with.

    What is beyond 40 scales is below 1e-340.
    """
    import mpmath as mp

    weights = [mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(scale) ** 2)) for k in range(reach + 1)]
    weights = weights[:0:-1] + weights
    total = mp.fsum(weights)
    return [weight / total for weight in weights]


def names_of(lines):
    """The items of a histogram."""
    return [line.item for line in lines]


def client_means(protocol, item, held, clients, trials, rng):
    """Means of client-by-client reports: ``(trials, n)``."""
    holds = np.tile(np.arange(clients) < held, trials)
    sent = protocol.reports(np.tile(item, (clients * trials, 1)), holds, rng)
    return sent.reshape(trials, clients, -1).mean(axis=1)
