"""Populations to measure with: bodies of real names and words, as items of k bits::

    data/*.csv, a word and its share -> packed into k bits, the long ones cut  `packing_for`
                                     -> those that coincide then, added up     `body`

"census" are first names of men in the United States; "english" and "german" are words of texts, of
which every client holds one. Where they come from says `data/README.md`. Whoever has a name or word
that is not in the table, one in ten to one in six, holds nothing here.

Each is packed as a user would do it who knows the language and not the table. For 40 and 64 bits
that is an alphabet of 5-bit letters, of which 8 and 12 fit; for 128, UTF-8, of which 16 bytes fit.
The shorter an item, the more words coincide.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from ldpcash.base.arrays import Bits, Reals
from ldpcash.base.checks import one_of
from ldpcash.histogram.packing import LATIN, Packing

LENGTHS = (40, 64, 128)


class _Source(NamedTuple):
    file: str
    whole: float  #: what all shares would add up to
    letters: str


BODIES = {
    "census": _Source("census_1990_male_first_names.csv", 100, LATIN),
    "english": _Source("english_words.csv", 1, LATIN.lower() + "'"),
    "german": _Source("german_words.csv", 1, LATIN.lower() + "äöüß'"),
}


class Names(NamedTuple):
    """A population: different items, and the fraction of clients that hold each.

    >>> anna = Packing(20, LATIN)
    >>> names = Names(anna.pack(["ANNA"]), np.array([0.6]), anna)
    >>> names.bits.shape, names.empty
    ((1, 20), 0.4)
    """

    bits: Bits  #: (M, k)
    share: Reals  #: (M,): the rest up to 1 holds nothing
    packing: Packing  #: to have strings again

    @property
    def empty(self) -> float:
        """The fraction of clients that hold nothing."""
        return float(1 - self.share.sum())


def packing_for(name: str, k: int) -> Packing:
    """How names or words of a body become items of k bits.

    Args:
        name: "census", "english" or "german".
        k: 40, 64 or 128.

    >>> german = packing_for("german", 40)
    >>> german.unpack(german.pack(["für", "geschwindigkeit"]))
    ['für', 'geschwin']
    """
    source = BODIES[one_of("name", name, BODIES)]
    k = int(one_of("k", k, LENGTHS))
    return Packing(k, source.letters if k < 128 else None, cut=True)


def body(name: str, k: int) -> Names:
    """A body as items of k bits, most frequent first. It is read once, and not to be written to.

    Args:
        name: "census", "english" or "german".
        k: 40, 64 or 128.

    >>> names = body("german", 64)
    >>> names.packing.unpack(names.bits[:5]), names.share[:2].tolist(), round(names.empty, 4)
    (['die', 'der', 'und', 'in', 'das'], [0.0302, 0.02884], 0.1668)
    >>> [len(body("german", k).bits) for k in LENGTHS]  # of 10,000 words
    [8745, 9870, 9987]
    """
    return _read(name, packing_for(name, k))


@lru_cache
def _read(name: str, packing: Packing) -> Names:
    source = BODIES[name]
    path = files("ldpcash.beyond") / "data" / source.file
    with path.open(encoding="utf-8") as file:
        _, *table = csv.reader(file)
    shares = [float(share) / source.whole for _, share in table]
    bits, place = np.unique(packing.pack(word for word, _ in table), axis=0, return_inverse=True)
    share = np.asarray(np.bincount(place.ravel(), shares), dtype=np.float64)
    order = np.argsort(-share, kind="stable")
    names = Names(bits[order], share[order], packing)
    for array in (names.bits, names.share):
        array.flags.writeable = False
    return names
