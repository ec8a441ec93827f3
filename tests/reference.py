"""Decoders as a textbook writes them, a frame and a bit at a time: what the fast ones must equal.

Nothing here is shared with the library: the tree is walked to every leaf, paths are Python lists,
and probabilities are added with NumPy's own logaddexp.
"""

import numpy as np


def successive_cancellation(llr, code):
    """The plain recursive decoder, min-sum: u of one frame."""
    u = []

    def decode(llr):
        if len(llr) == 1:
            u.append(frozen_bit(code, u) if code.frozen[len(u)] else int(llr[0] < 0))
            return np.array(u[-1:])
        half = len(llr) // 2
        a, b = llr[:half], llr[half:]
        left = decode(np.sign(a) * np.sign(b) * np.minimum(abs(a), abs(b)))
        right = decode(b + (1 - 2 * left) * a)
        return np.concatenate([left ^ right, right])

    decode(llr)
    return np.array(u)


def frozen_bit(code, u):
    """The value of frozen bit number len(u), given the bits before it."""
    return sum(u[source] for source in code.dynamic.get(len(u), ())) % 2


def leaf_llr(llr, u, exact):
    """LLR of bit number len(u), given the bits before it."""
    if len(llr) == 1:
        return llr[0]
    half = len(llr) // 2
    a, b = llr[:half], llr[half:]
    if len(u) < half:
        if exact:
            mixed = np.logaddexp(0, a + b) - np.logaddexp(a, b)
        else:
            mixed = np.sign(a) * np.sign(b) * np.minimum(abs(a), abs(b))
        return leaf_llr(mixed, u, exact)
    x = np.array(u[:half])
    step = 1
    while step < half:
        for i in range(0, half, 2 * step):
            x[i : i + step] ^= x[i + step : i + 2 * step]
        step *= 2
    return leaf_llr(b + (1 - 2 * x) * a, u[half:], exact)


def list_decode(llr, code, list_size, exact):
    """Surviving paths of one frame, best first, as (u, metric).

    Returns also by how much the closest decision was made: the least difference between the worst
    path that was kept and the best that was not. Below rounding, it was made by chance.
    """
    paths, margin = [([], 0.0)], np.inf
    for i in range(len(llr)):
        grown = []
        for u, metric in paths:
            value = leaf_llr(llr, u, exact)
            for bit in (frozen_bit(code, u),) if code.frozen[i] else (0, 1):
                disagreement = -value if bit == 0 else value
                penalty = np.logaddexp(0, disagreement) if exact else max(0.0, disagreement)
                grown.append(([*u, bit], metric + penalty))
        grown.sort(key=lambda path: path[1])
        if len(grown) > list_size:
            margin = min(margin, grown[list_size][1] - grown[list_size - 1][1])
        paths = grown[:list_size]
    return paths, margin
