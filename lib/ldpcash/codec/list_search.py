"""The walk of a list decoder through the tree of a code, for many frames at once.

Every path of every frame is a *lane*: lane ``p * frames + t`` is path p of frame t, so each step is
one NumPy call on an array ``(size of node, lanes)``. There is a method for each kind of node (see
`ldpcash.codec.tree`). All of them stand on one equation. If a lane has LLRs r at a node and decides
for the word x there, its score changes to::

    score = base + sum of (1 - 2 x) r            -2 times the path metric, up to a constant
          = base + sum of |r|                    for the x that agrees with every LLR

where ``base`` depends on decided bits alone. Paths of one frame are compared by their scores, so
what is common to all of them may be left out. (With ``exact``, what undecided bits are worth is
2 log cosh(r / 2) in place of |r|; the first line stays.)

Dynamic frozen bits make a *known word*, another in each lane. The LLRs change their signs where it
has ones, and the decided bits are put right in the end; in between, it is as if they were 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpcash.base.arrays import Bits, sum_halves
from ldpcash.codec.boxplus import log1p_exp_minus, log_cosh_half
from ldpcash.codec.llr import Real
from ldpcash.codec.polar import polar_transform
from ldpcash.codec.tree import Node, Parities

Lanes = NDArray[np.intp]


class Decision(NamedTuple):
    """What a node was decided for, in every lane that is left.

    >>> Decision(np.zeros((2, 1), np.uint8), np.array([3.0]), None).score.tolist()
    [3.0]
    """

    bits: Bits  #: (size, lanes): the word x
    score: Real  #: (lanes,)
    origin: Lanes | None  #: (lanes,): the lane that each came from; None if nothing moved


class ListSearch:
    """The walk for one chunk of frames.

    Args:
        frames: how many.
        list_size: paths that survive each decision.
        exact: box-plus in place of min-sum.
        parities: of the code's dynamic frozen bits; None without any.

    >>> from ldpcash.codec.tree import tree
    >>> search = ListSearch(frames=1, list_size=2, exact=False, parities=None)
    >>> root = tree(np.array([False, False]))
    >>> found = search.decide(root, np.array([[3.0], [-1.0]]), np.zeros(1), best_only=False)
    >>> found.bits.T.tolist(), found.score.tolist()
    ([[0, 0], [0, 1]], [2.0, 4.0])
    """

    def __init__(self, frames: int, list_size: int, exact: bool, parities: Parities | None) -> None:
        self.frames = frames
        self.list_size = list_size
        self.exact = exact
        self.parities = parities
        self._step = {
            "frozen": self._frozen,
            "repetition": self._repetition,
            "free": self._free,
            "frozen_half": self._frozen_half,
            "repeated_half": self._repeated_half,
            "two_halves": self._two_halves,
        }
        if parities:
            self.state = np.zeros((parities.columns.shape[1], frames), dtype=np.uint64)

    def decide(self, node: Node, llr: Real, base: Real, best_only: bool) -> Decision:
        """Decide the bits of a node in every lane.

        Args:
            node: which.
            llr: ``(size, lanes)``.
            base: ``(lanes,)``.
            best_only: whether one lane a frame, the best, is all that is wanted.
        """
        kind = node.kind
        if kind == "free" and not best_only and self.list_size > 1:
            kind = node.halves
        return self._step[kind](node, llr, base, best_only)

    # One method for each kind of node

    def _frozen(self, node: Node, llr: Real, base: Real, best_only: bool) -> Decision:
        """x = 0: score = base + sum of r."""
        known = self._known_word(node)
        score = base + sum_halves(_signed(llr, known))
        origin = self._best(score) if best_only else None
        score = _pick(score, origin)
        zeros = np.zeros((node.size, score.size), np.uint8)
        return Decision(_shifted(zeros, known, origin), score, origin)

    def _repetition(self, node: Node, llr: Real, base: Real, best_only: bool) -> Decision:
        """x = (u, ..., u): score = base + sum of r for u = 0, base - sum of r for u = 1."""
        known = self._known_word(node)
        score = self._branch(sum_halves(_signed(llr, known)), base)
        kept = self._best(score) if best_only else self._survivors(score)
        bit, origin = self._parents(kept, score.size)
        self._note(node, bit, origin)
        bits = np.broadcast_to(bit, (node.size, bit.size))
        return Decision(_shifted(bits, known, origin), _pick(score, kept), origin)

    def _free(self, node: Node, llr: Real, base: Real, best_only: bool) -> Decision:
        """x agrees with every LLR: score = base + sum of |r|, and no other path overtakes it."""
        score = base + self._potential(llr)
        origin = self._best(score)
        bits = (_pick(llr, origin) < 0).view(np.uint8)
        self._note(node, bits, origin)
        return Decision(bits, _pick(score, origin), origin)

    def _frozen_half(self, node: Node, llr: Real, base: Real, best_only: bool) -> Decision:
        """x = (y, y) on LLRs (a, b): the sum of (1 - 2 y) (a + b). So y is decided on a + b."""
        left, right = node.children
        a, b = _halves(llr)
        known = self._known_word(left)
        bits, score, origin = self.decide(right, _signed(a, known) + b, base, best_only)
        return Decision(np.concatenate([_shifted(bits, known, origin), bits]), score, origin)

    def _repeated_half(self, node: Node, llr: Real, base: Real, best_only: bool) -> Decision:
        """x = (y, y) or (1 + y, y) on LLRs (a, b): y is decided on b + a or on b - a.

        Both become lanes of their own, and what y can still be worth decides which of them survive.
        """
        left, right = node.children
        a, b = _halves(llr)
        known = self._known_word(left)
        llr = self._branch(_signed(a, known), b)
        base = self._branch(np.zeros_like(base), base)
        branches = base.size
        kept = None
        # A last node that is free takes the best lane, which is the same before and after pruning.
        if branches > self.list_size * self.frames and not (best_only and right.kind == "free"):
            kept = self._survivors(base + self._potential(llr))
        if self.parities:
            self._note(left, *self._parents(kept, branches))
        bits, score, origin = self.decide(right, _pick(llr, kept), _pick(base, kept), best_only)
        bit, origin = self._parents(_follow(kept, origin), branches)
        return Decision(np.concatenate([_shifted(bits ^ bit, known, origin), bits]), score, origin)

    def _two_halves(self, node: Node, llr: Real, base: Real, best_only: bool) -> Decision:
        """x = (w + y, y) on LLRs (a, b): w is decided on the LLRs of the sum of both halves' bits,
        and then y on b + (1 - 2 w) a.

        The base is set anew each time, so that base + sum of |r| goes on from the score before.
        """
        left, right = node.children
        a, b = _halves(llr)
        mixed = self._llr_of_xor(a, b)
        base = base + self._potential(llr) - self._potential(mixed)
        w, score, left_origin = self.decide(left, mixed, base, False)
        a, b = _halves(_pick(llr, left_origin))
        summed = b + _signed(a, w)
        base = score - self._potential(summed)
        y, score, origin = self.decide(right, summed, base, best_only)
        word = np.concatenate([_pick(w, origin) ^ y, y])
        return Decision(word, score, _follow(left_origin, origin))

    # Scores

    def _potential(self, llr: Real) -> Real:
        """What a node adds to each lane's score if all its bits are free: ``(lanes,)``.

        While there is one path it is common to all, and need not be known.
        """
        if llr.shape[1] == self.frames:
            return np.zeros(self.frames, llr.dtype)
        size = np.abs(llr)
        return sum_halves(2 * log_cosh_half(size) if self.exact else size)

    def _llr_of_xor(self, a: Real, b: Real) -> Real:
        """LLR of the sum of two bits: sign(a b) min(|a|, |b|), or box-plus if exact.

        Box-plus is log cosh((a + b) / 2) - log cosh((a - b) / 2), with an error of a few units in
        the last place of the larger LLR, or of the result where both are small and alike.
        """
        low = np.minimum(a, b)
        high = np.maximum(a, b)
        min_sum = np.maximum(low, np.negative(high, out=high), out=low)
        if not self.exact:
            return min_sum
        plus, minus = np.abs(a + b), np.abs(a - b)
        return np.where(
            plus + minus < 1,
            log_cosh_half(plus) - log_cosh_half(minus),
            min_sum + (log1p_exp_minus(plus) - log1p_exp_minus(minus)),
        )

    # Lanes

    def _branch(self, a: Real, b: Real) -> Real:
        """Two lanes for each: path p becomes path 2p, with b + a, and path 2p + 1, with b - a."""
        by_path = (*a.shape[:-1], -1, self.frames)
        a, b = a.reshape(by_path), b.reshape(by_path)
        both = np.empty((*a.shape[:-1], 2, self.frames), a.dtype)
        np.add(b, a, out=both[..., 0, :])
        np.subtract(b, a, out=both[..., 1, :])
        return both.reshape(*a.shape[:-2], -1)

    def _parents(self, kept: Lanes | None, branches: int) -> tuple[Bits, Lanes]:
        """Undo `_branch`: the bit decided in each kept lane, and the lane before it."""
        if kept is None:
            kept = np.arange(branches)
        path, frame = np.divmod(kept, self.frames)
        return (path & 1).astype(np.uint8), (path >> 1) * self.frames + frame

    def _best(self, score: Real) -> Lanes | None:
        """The lane of the best path of each frame; the first of equals."""
        if score.size == self.frames:
            return None
        path = score.reshape(-1, self.frames).argmax(axis=0)
        return path * self.frames + np.arange(self.frames)

    def _survivors(self, score: Real) -> Lanes | None:
        """The lanes of the ``list_size`` best paths of each frame, in order of path."""
        paths = score.size // self.frames
        if paths <= self.list_size:
            return None
        by_frame = np.ascontiguousarray(score.reshape(paths, self.frames).T)
        worst = paths - self.list_size
        threshold = np.partition(by_frame, worst, axis=1)[:, worst, None]
        keep = by_frame >= threshold
        if np.count_nonzero(keep) > self.list_size * self.frames:  # equals: the first ones stay
            above = by_frame > threshold
            room = self.list_size - above.sum(axis=1, keepdims=True)
            keep = above | (keep & ~above & (np.cumsum(keep & ~above, axis=1) <= room))
        frame, path = np.divmod(np.flatnonzero(keep).reshape(self.frames, -1), paths)
        return (path * self.frames + frame).T.ravel()

    # Dynamic frozen bits: each lane carries the parities of its information bits so far

    def _known_word(self, node: Node) -> Bits | None:
        """The word ``(size, lanes)`` that a node's dynamic frozen bits make; None without any."""
        if not (self.parities and node.dynamic):
            return None
        u = np.zeros((node.size, self.state.shape[1]), dtype=np.uint8)
        for index in node.dynamic:
            word, bit = self.parities.place[index]
            u[index - node.start] = self.state[word] >> np.uint64(bit) & np.uint64(1)
        return polar_transform(u)

    def _note(self, node: Node, bits: Bits, origin: Lanes | None) -> None:
        """Add a decided node's information bits to the parities of each lane.

        Args:
            node: a repetition, with ``bits`` its one bit, or a free node, with its word.
            bits: ``(lanes,)`` or ``(size, lanes)``.
            origin: where the lanes came from.
        """
        if not self.parities:
            return
        state = _pick(self.state, origin)
        u = bits[None] if node.kind == "repetition" else polar_transform(bits.copy())
        last = node.start + node.size
        for column, values in zip(self.parities.columns[last - len(u) : last], u, strict=True):
            state = state ^ column[:, None] * values
        self.state = state


def _halves(llr: Real) -> tuple[Real, Real]:
    """The LLRs of a word's first and second half."""
    half = len(llr) // 2
    return llr[:half], llr[half:]


def _pick(values: Real, origin: Lanes | None) -> Real:
    """Rearrange the last axis; None leaves it as it is."""
    if origin is None:
        return values
    return np.take(values, origin, axis=-1, mode="clip")  # "clip": no bounds are checked


def _signed(llr: Real, bits: Bits | None) -> Real:
    """LLRs of bits that are sent flipped where ``bits`` is 1."""
    return llr if bits is None else llr * (1 - 2 * bits.view(np.int8))


def _shifted(bits: Bits, known: Bits | None, origin: Lanes | None) -> Bits:
    """Bits, flipped where the known word of the lane that each lane came from is 1."""
    return bits if known is None else bits ^ _pick(known, origin)


def _follow(first: Lanes | None, then: Lanes | None) -> Lanes | None:
    """The lane each lane came from, over two moves."""
    return then if first is None else _pick(first, then)
