"""Views: a codeword's symbol looked at as one of g values, of which a client reports one.

How many values g = 2**r are best depends on epsilon, and a code's symbols have m bits whatever
epsilon is. So a client looks at a symbol through one of several public *views*, each of which sends
symbols to values::

    symbol s = (s0, s1), s0 of r bits, s1 of m - r bits     value = s0 + the first r bits of P * s1

in a finite field, with another P for each view. Where r is at most m / 2 there are 2**(m - r) of
them, and two different symbols have the same value in one of g, or in none. For a larger r there
would be few views, and symbols with the same value in one of few are hard to tell apart: so there
are 16, if r allows. The sums of a value's bits are coordinates of the codeword, so counts of values
become sums of coordinates::

    codeword -> values, one a view                           `Views.values_of`
    counts (views, g) of values -> sums for each coordinate  `Views.sums_of`

A code that is not made of symbols has a view for each coordinate, with its bit as the value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpcash.base.arrays import Bits, Counts
from ldpcash.base.checks import whole_number
from ldpcash.codec.fields import multiply
from ldpcash.codec.hadamard import symbol_width, symbols_of
from ldpcash.codec.polar import PolarCode

_FEW = 4  # log2 of the least number of views of a block, if a value is not all of a symbol


class Views:
    """All views of a code's symbols as values of r bits.

    Args:
        code: any code for r = 1; made of symbols of at least r bits for r > 1.
        width: r, bits of a value.

    >>> from ldpcash.codec.hadamard import hadamard_code
    >>> views = Views(hadamard_code(4), 2)
    >>> views.count, views.values
    (4, 4)
    >>> views.values_of(hadamard_code(4).encode([[0, 0, 1, 1], [0, 1, 0, 0]]))
    array([[3, 3, 3, 3],
           [0, 1, 2, 3]])
    """

    def __init__(self, code: PolarCode, width: int) -> None:
        self.symbol_width = symbol_width(code)
        width = whole_number("width", width, 1, self.symbol_width)
        self.n = code.n
        self.values = 1 << width  #: g
        if self.symbol_width == 1:
            self._rows: Counts = np.zeros((1, 0), dtype=np.intp)
            place = np.arange(code.n)[:, None]
        else:
            rest = self.symbol_width - width
            field = max(rest, width)
            few = min(width, _FEW) if rest else 0
            factors = np.arange(1 << max(rest, few))[:, None]
            own = np.tile(1 << np.arange(width), (len(factors), 1))
            others = multiply(factors, 1 << np.arange(rest)[None], field) & self.values - 1
            #: (views of a block, m): in each of them, the value of each bit of the symbol
            self._rows = np.concatenate([own, others], axis=1)
            sums = np.arange(1, self.values)
            parity = np.bitwise_count(self._rows[:, None] & sums[:, None]) & 1
            mask = (parity.astype(np.intp) << np.arange(self.symbol_width)).sum(axis=2)
            size = 1 << self.symbol_width
            place = (size - 1 - mask) + size * np.arange(code.n // size)[:, None, None]
            place = place.reshape(-1, self.values - 1)
        self.count = len(place)
        self._place = place.ravel()  # the coordinate of each sum of each view
        # Some views may be about the same coordinates. In this order their sums stand together,
        # those of each coordinate from a start on.
        self._order = np.argsort(self._place, kind="stable")
        self._coordinates, self._starts = np.unique(self._place[self._order], return_index=True)
        self._unique = len(self._starts) == len(self._place)

    def values_of(self, words: Bits) -> Counts:
        """``(N, n)`` codewords to ``(N, views)`` values."""
        if self.symbol_width == 1:
            return words.astype(np.intp)
        symbols = symbols_of(words, self.symbol_width)
        values = np.zeros((*symbols.shape, len(self._rows)), dtype=np.intp)
        for bit, row in enumerate(self._rows.T):
            values ^= (symbols >> bit & 1)[:, :, None] * row
        return values.reshape(len(words), self.count)

    def sums_of(self, spectra: NDArray[Any]) -> NDArray[Any]:
        """What views say of sums of a value's bits, added up by coordinate.

        Args:
            spectra: ``(views, g, T)``, for each sum of bits, by the number that has them as its
                bits; the empty sum says nothing.

        Returns ``(n, T)``; 0 where no view is about a coordinate.

        >>> Views(PolarCode(2, [0, 1]), 1).sums_of(np.array([[[9], [5]], [[9], [2]]]))
        array([[5],
               [2]])
        """
        flat = spectra[:, 1:].reshape(len(self._place), spectra.shape[2])
        sums = np.zeros((self.n, flat.shape[1]), spectra.dtype)
        if self._unique:
            sums[self._place] = flat
        else:
            sums[self._coordinates] = np.add.reduceat(flat[self._order], self._starts, axis=0)
        return sums
