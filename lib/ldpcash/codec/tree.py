"""The tree of a code, down to the nodes that a list decoder decides at once.

A node stands for ``size`` neighbouring bits of u, and for the word x of as many bits that they
make. Its left half is decided first. What is frozen tells how a node is decided (`Node.kind`)::

    frozen        no information: x is known, 0 or the word of its dynamic bits
    repetition    the last bit alone carries information: x is that bit, over and over
    free          every bit carries information: x can be anything
    frozen_half   the left half is frozen, so x is its right half twice
    repeated_half the left half is a repetition, so x is its right half twice, the first one flipped
                  or not
    two_halves    anything else

"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpcash.codec.polar import PolarCode

_BY_LEFT_HALF = {"frozen": "frozen_half", "repetition": "repeated_half"}


@dataclass(frozen=True)
class Node:
    """A node of the tree.

    >>> PolarCode(8, [5, 6, 7]).frozen.astype(int)
    array([1, 1, 1, 1, 1, 0, 0, 0])
    >>> root = tree(PolarCode(8, [5, 6, 7]).frozen)
    >>> left, right = root.children
    >>> root.kind, left.kind, right.kind, [child.kind for child in right.children]
    ('frozen_half', 'frozen', 'repeated_half', ['repetition', 'free'])
    """

    kind: str  #: how it is decided
    size: int
    start: int  #: index of its first bit in u
    halves: str = ""  #: how it is decided by its halves, if it has any
    dynamic: tuple[int, ...] = ()  #: indices of its dynamic frozen bits, if it is decided at once
    children: tuple[Node, ...] = ()  #: its left and its right half, if it has any


def tree(
    frozen: NDArray[np.bool_],
    start: int = 0,
    dynamic: frozenset[int] = frozenset(),
    free_at_once: bool = True,
) -> Node:
    """The tree of a frozen pattern.

    Args:
        frozen: ``(size,)``, which bits are frozen.
        start: index of the first of them.
        dynamic: indices of all dynamic frozen bits.
        free_at_once: whether nodes without frozen bits are decided at once where that is right, or
            by their halves.

    >>> tree(np.array([True, False])).kind
    'repetition'
    """
    size, half = len(frozen), len(frozen) // 2
    if frozen[:-1].all():
        kind = "frozen" if frozen[-1] else "repetition"
        mine = tuple(sorted(dynamic.intersection(range(start, start + size))))
        return Node(kind, size, start, dynamic=mine)
    left = tree(frozen[:half], start, dynamic, free_at_once)
    right = tree(frozen[half:], start + half, dynamic, free_at_once)
    halves = _BY_LEFT_HALF.get(left.kind, "two_halves")
    kind = "free" if free_at_once and not frozen.any() else halves
    return Node(kind, size, start, halves, (), (left, right))


class Parities:
    """What dynamic frozen bits depend on: a bit of a 64-bit word for each of them.

    >>> parities = Parities(PolarCode(4, [1, 3], {2: [1]}))
    >>> parities.place, parities.columns.ravel().tolist()
    ({2: (0, 0)}, [0, 1, 0, 0])
    """

    def __init__(self, code: PolarCode) -> None:
        #: word and bit of each dynamic index
        self.place = {index: divmod(i, 64) for i, index in enumerate(code.dynamic)}
        #: (n, words): the dynamic bits that change with each index
        self.columns = np.zeros((code.n, len(code.dynamic) // 64 + 1), dtype=np.uint64)
        for index, sources in code.dynamic.items():
            word, bit = self.place[index]
            self.columns[list(sources), word] |= np.uint64(1 << bit)
