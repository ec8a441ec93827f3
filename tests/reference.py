"""Decoders as a textbook writes them, a frame and a bit at a time: what the fast ones must equal.

Nothing here is shared with the library: the tree is walked to every leaf, paths are Python lists,
and probabilities are added with NumPy's own logaddexp.
"""

import numpy as np


def successive_cancellation(llr, frozen):
    """The plain recursive decoder, min-sum: codeword and u of one frame."""
    if len(llr) == 1:
        u = np.array([0 if frozen[0] or llr[0] >= 0 else 1])
        return u, u
    half = len(llr) // 2
    a, b = llr[:half], llr[half:]
    left_x, left_u = successive_cancellation(
        np.sign(a) * np.sign(b) * np.minimum(abs(a), abs(b)), frozen[:half]
    )
    right_x, right_u = successive_cancellation(b + (1 - 2 * left_x) * a, frozen[half:])
    x = np.concatenate([left_x ^ right_x, right_x])
    return x, np.concatenate([left_u, right_u])


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


def list_decode(llr, frozen, list_size, exact):
    """Surviving paths of one frame, best first, as (u, metric)."""
    paths = [([], 0.0)]
    for i in range(len(llr)):
        grown = []
        for u, metric in paths:
            value = leaf_llr(llr, u, exact)
            for bit in (0,) if frozen[i] else (0, 1):
                disagreement = -value if bit == 0 else value
                penalty = np.logaddexp(0, disagreement) if exact else max(0.0, disagreement)
                grown.append(([*u, bit], metric + penalty))
        paths = sorted(grown, key=lambda path: path[1])[:list_size]
    return paths
