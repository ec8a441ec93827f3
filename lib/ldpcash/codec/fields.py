"""The finite fields of 2**m elements: m bits, which add without carries and multiply modulo a
primitive polynomial."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Polynomials over GF(2) whose root generates the field of 2**m elements, as bits: Lidl and
# Niederreiter, Finite Fields, table D.
PRIMITIVE = (3, 7, 11, 19, 37, 67, 131, 285, 529, 1033, 2053, 4179, 8219, 17475)


def powers(m: int) -> NDArray[np.intp]:
    """All elements but 0, as powers of the generator: ``(2**m - 1,)``.

    >>> powers(3).tolist()
    [1, 2, 4, 3, 6, 7, 5]
    """
    found = [1]
    while len(found) < 2**m - 1:
        double = found[-1] << 1
        found.append(double ^ PRIMITIVE[m - 1] if double >> m else double)
    return np.array(found)


def multiply(a: NDArray[np.intp], b: NDArray[np.intp], m: int) -> NDArray[np.intp]:
    """Products in the field of 2**m elements, of arrays that fit together.

    >>> multiply(np.array([0, 1, 5]), np.array([7, 7, 7]), 3).tolist()
    [0, 7, 6]
    """
    product = np.zeros(np.broadcast_shapes(a.shape, b.shape), dtype=np.intp)
    for bit in range(m - 1, -1, -1):
        product = product << 1
        product = product ^ (product >> m) * PRIMITIVE[m - 1] ^ (b >> bit & 1) * a
    return product
