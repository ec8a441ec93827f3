"""Decoders: batches of log-likelihood ratios in, items out.

An LLR is log P(bit = 0) / P(bit = 1), so a positive one speaks for 0. `SCLDecoder` is the
successive-cancellation list decoder of Tal and Vardy, `MLDecoder` compares with every codeword.
Both take ``(..., n)`` LLRs and work through them a chunk of frames at a time. Where a decision
hangs on the result they use only elementwise steps in a fixed order, which round alike everywhere:
the same input gives the same bits on every CPU, in every batch and with any number of threads.

How the list decoder goes through a chunk. It walks the code's binary tree (`_plan`), carrying an
array of LLRs ``(size of node, lanes)``. A *lane* is one path of one frame; lane ``p * frames + t``
is path p of frame t, so lanes are long, contiguous, and every step is one NumPy call over all paths
of all frames. A node hands back its decided bits, each lane's score, and for each lane the lane it
came from, so that arrays higher up are rearranged once, when they are next needed.

Scores. With a path metric M, the sum of |LLR| over the bits where path and LLR disagree, the score
is -2 M up to a constant common to all paths. Undecided bits are free to agree, so at a node whose
lanes hold LLRs r the score is ``base + sum |r|``, where ``base`` depends on decided bits alone. A
child that is frozen or a repetition therefore needs no LLRs of its own: deciding it turns the
parent's halves a, b into b + a or b - a, and the sum of absolute values tells the new score. With
``exact=True`` the same holds with 2 log cosh(r / 2) in place of |r|.

Dynamic frozen bits. Each lane carries the parities of its information bits so far, one bit of a
word for each dynamic frozen bit. A frozen or repetition node with dynamic bits in it is then one
without them, shifted by a word that is known in each lane: the LLRs where that word has ones change
their signs, and the decided bits are put right in the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.checks import whole_number
from ldpcash.polar import Bits, PolarCode, bits_of, polar_transform

Real = NDArray[Any]  # float32 or float64
Lanes = NDArray[np.intp]

CERTAIN = 1e30  # an LLR beyond this, an infinite one too, means that the bit is known
_WORKING_VALUES = 2**22  # LLRs a chunk may hold at one level of the tree
_MAX_FRAMES = 2048  # more frames in a chunk gain nothing
_ML_VALUES = 2**24  # entries of the largest codebook an ML decoder holds

# Arrays of a megabyte come and go here. glibc returns such blocks to the system at once, and each
# page then costs a fault again: two to four times the time of all else. It keeps blocks up to the
# size of the largest that was ever freed, so free one.
np.empty(2**24, dtype=np.uint8)


class SCLDecoder:
    """Successive-cancellation list decoder; a list of one is plain successive cancellation.

    LLRs given as float32 are decoded in float32 by min-sum; all others, and all with
    ``exact=True``, in float64. Infinite LLRs, and LLRs beside which the others of the frame would
    be lost in rounding, count as known bits. Among equal scores the path that comes first in the
    order of items survives; with ``exact=True`` scores are rounded, which may decide between paths
    that would be equal. Where the last bits of the code are all free, an LLR of exactly 0 there is
    read as a codeword bit of 0.

    Args:
        code: the code to decode.
        list_size: how many paths survive each decision, at least 1.
        exact: False for min-sum, which does not see the scale of the LLRs; True for box-plus and
            exact path probabilities, which do. LLRs scaled far below their true size make all paths
            nearly equally likely, down to where float64 cannot tell them apart.

    >>> code = PolarCode.construct(64, 8)
    >>> item = np.array([1, 0, 1, 1, 0, 0, 1, 0], dtype=np.uint8)
    >>> llr = 1.0 - 2.0 * code.encode(item)
    >>> SCLDecoder(code).decode(llr)
    array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8)
    """

    def __init__(self, code: PolarCode, list_size: int = 8, exact: bool = False) -> None:
        self.code = code
        self.list_size = whole_number("list_size", list_size, 1)
        self.exact = bool(exact)
        # A frozen left half makes the code a repetition of the right half: decode that, on sums.
        self._length = code.n
        while self._length > 1 and code.frozen[: code.n - self._length // 2].all():
            self._length //= 2
        start = code.n - self._length
        self._info = code.info - start
        self._parities = _Parities(code) if code.dynamic else None
        # Rate-1 nodes are decided at once, which is right for a list of one and for min-sum.
        rate_one = not exact or self.list_size == 1
        self._root = _plan(code.frozen[start:], start, set(code.dynamic), rate_one)
        per_frame = self._length * min(self.list_size, 2**code.k)
        self.frames_per_chunk = min(_MAX_FRAMES, max(1, _WORKING_VALUES // per_frame))

    def decode(self, llr: ArrayLike) -> Bits:
        """The item of the best surviving path: ``(..., n)`` LLRs to ``(..., k)`` bits."""
        frames, shape = _as_frames(llr, self.code.n)
        bits = np.empty((self.code.k, len(frames)), dtype=np.uint8).T
        for part in _chunks(len(frames), self.frames_per_chunk):
            bits[part] = self._decode_chunk(frames[part], best_only=True)[:, 0]
        return bits.reshape(*shape, self.code.k)

    def decode_list(self, llr: ArrayLike) -> tuple[Bits, NDArray[np.float64]]:
        """All surviving paths, best first, no two alike.

        Returns bits ``(..., L, k)`` and metrics ``(..., L)``, with L the list size, or 2**k where
        that is less. A metric is the sum of |LLR| over the bits that disagree with the LLR's sign;
        with ``exact=True``, -log of the probability of its n bits, each by its own LLR. Smaller is
        better.

        >>> code = PolarCode(2, [0, 1])
        >>> bits, metrics = SCLDecoder(code, 2).decode_list([3.0, -1.0])
        >>> bits.tolist(), metrics.tolist()
        ([[1, 1], [0, 0]], [0.0, 1.0])
        """
        frames, shape = _as_frames(llr, self.code.n)
        width = min(self.list_size, 2**self.code.k)
        bits = np.empty((len(frames), width, self.code.k), dtype=np.uint8)
        metrics = np.empty((len(frames), width))
        # Metrics are taken over whole codewords, which can be longer than what is decoded.
        room = max(1, _WORKING_VALUES // (self.code.n * width))
        for part in _chunks(len(frames), min(self.frames_per_chunk, room)):
            found = self._decode_chunk(frames[part], best_only=False)
            metric = self._metric(self.code.encode(found), frames[part])
            order = np.argsort(metric, axis=1, kind="stable")
            bits[part] = np.take_along_axis(found, order[:, :, None], axis=1)
            metrics[part] = np.take_along_axis(metric, order, axis=1)
        return bits.reshape(*shape, width, self.code.k), metrics.reshape(*shape, width)

    def _metric(self, codewords: Bits, llr: Real) -> NDArray[np.float64]:
        """Metrics of complete paths: ``(frames, L, n)`` bits, ``(frames, n)`` LLRs."""
        llr = _tamed(llr.T.astype(np.float64), self.exact)[:, None]  # (n, 1, frames)
        disagreement = np.maximum(np.where(codewords.T, llr, -llr), 0)
        metric = sum_halves(disagreement).T
        if self.exact:
            metric += sum_halves(_log1p_exp_minus(np.abs(llr))).T
        return metric

    def _decode_chunk(self, llr: Real, best_only: bool) -> Bits:
        """``(frames, n)`` LLRs to ``(frames, paths, k)`` bits."""
        frames = len(llr)
        llr = np.ascontiguousarray(llr.T, dtype=np.float64 if self.exact else llr.dtype)
        llr = _tamed(llr, self.exact)
        while len(llr) > self._length:
            half = len(llr) // 2
            llr = llr[:half] + llr[half:]
        search = _ListSearch(frames, self.list_size, self.exact, self._parities)
        x, _, _ = search.decide(self._root, llr, np.zeros(frames, llr.dtype), best_only)
        u = polar_transform(np.array(x))[self._info]
        return u.reshape(self.code.k, -1, frames).transpose(2, 1, 0)


class MLDecoder:
    """Maximum-likelihood decoder: the codeword with the largest correlation with the LLRs.

    Correlations are one float32 matrix product, whose rounding depends on the machine. So every
    codeword that could still be the best given that rounding is compared again, in float64 and in a
    fixed order of addition. Equal correlations go to the item that comes first, bits read as a
    number, most significant first.

    Args:
        code: the code to decode; 2**k * n may be at most 2**24.
        hard: use only the signs of the LLRs; one that is 0 then says nothing.

    >>> code = PolarCode(4, [1, 3])
    >>> MLDecoder(code).decode([[-1.0, -2.0, 0.5, 3.0], [0.0, 0.0, 0.0, 0.0]]).tolist()
    [[1, 0], [0, 0]]
    """

    def __init__(self, code: PolarCode, hard: bool = False) -> None:
        if 2**code.k * code.n > _ML_VALUES:
            raise ValueError(
                f"code = ({code.n}, {code.k}): an ML decoder holds all codewords,"
                " which takes 2**k * n of at most 2**24"
            )
        self.code = code
        self.hard = bool(hard)
        self._signs = (1 - 2 * code.codebook().astype(np.int8)).astype(np.float32)
        self.frames_per_chunk = max(1, min(512, _WORKING_VALUES >> code.k))

    def decode(self, llr: ArrayLike) -> Bits:
        """The most likely item: ``(..., n)`` LLRs to ``(..., k)`` bits."""
        frames, shape = _as_frames(llr, self.code.n)
        items = np.empty(len(frames), dtype=np.intp)
        for part in _chunks(len(frames), self.frames_per_chunk):
            llr = np.sign(frames[part]) if self.hard else frames[part]
            items[part] = self._decode_chunk(_tamed(llr.T).T)
        return bits_of(items, self.code.k).reshape(*shape, self.code.k)

    def _decode_chunk(self, llr: Real) -> NDArray[np.intp]:
        """``(frames, n)`` LLRs to the numbers of the best codewords."""
        scores = llr.astype(np.float32) @ self._signs.T
        best = scores.argmax(axis=1)
        if self.hard:
            return best  # sums of n signs are whole numbers: no rounding
        # A float32 sum of n terms is off by less than n * 2**-24 * sum |LLR|; twice that, for both
        # codewords, and twice again, for the conversion and the comparison itself. Close to the
        # smallest float32 each term can be off by 2**-150 besides.
        total = np.abs(llr).sum(axis=1, keepdims=True)
        slack = self.code.n * (2.0**-22 * total + 2.0**-147)
        close = scores >= scores.max(axis=1, keepdims=True) - slack
        unsure = np.flatnonzero(close.sum(axis=1) > 1)
        for part in _chunks(len(unsure), max(1, _WORKING_VALUES // self._signs.size)):
            frame, item = np.nonzero(close[unsure[part]])
            products = self._signs[item] * llr[unsure[part]][frame].astype(np.float64)
            settled = np.full((len(unsure[part]), len(self._signs)), -np.inf)
            settled[frame, item] = sum_halves(products.T)
            best[unsure[part]] = settled.argmax(axis=1)
        return best


# LLRs on their way in


def _as_frames(llr: ArrayLike, n: int) -> tuple[Real, tuple[int, ...]]:
    """LLRs as ``(frames, n)`` floats, and the leading shape they came in."""
    array = np.asarray(llr)
    if array.ndim == 0 or array.shape[-1] != n:
        raise ValueError(f"llr has shape {array.shape}: the last dimension must be n = {n}")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"llr has type {array.dtype}: needs real numbers")
    if array.dtype != np.float32:
        array = array.astype(np.float64, copy=False)
    return array.reshape(-1, n), array.shape[:-1]


def _chunks(total: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, total, size))


def _tamed(llr: Real, exact: bool = False) -> Real:
    """LLRs that can be added up: ``(n, frames)`` to the same shape.

    A bit counts as known if its LLR is infinite, beyond `CERTAIN`, or so large that the frame's
    median would be lost in rounding beside it. Then it is made to outweigh all other bits together.
    Each frame is judged by itself, so what it decodes to does not depend on its neighbours.
    """
    n = len(llr)
    size = np.abs(llr)
    peak = size.max(axis=0)
    if np.isnan(peak).any():
        raise ValueError("llr holds NaN: an LLR must be a number, or infinite")
    faint = 128 * float(np.finfo(llr.dtype).eps)
    heard = (size > faint * peak).sum(axis=0, dtype=np.uint16)
    odd = (peak > CERTAIN) | (2 * heard <= n)
    if not odd.any():
        return llr
    frames = llr[:, odd].astype(np.float64)
    size = np.abs(frames)
    median = np.partition(size, n // 2, axis=0)[n // 2]
    certain = (size > CERTAIN) | ((faint * size > median) & (median > 0))
    largest = np.where(certain, 0.0, size).max(axis=0)
    if exact:
        largest = np.maximum(largest, 40.0)  # which sees the scale: a small LLR is not certain
    known = np.where(largest > 0, 2 * n * largest, 1.0)
    tamed = llr.copy()
    tamed[:, odd] = np.where(certain, np.copysign(known, frames), frames)
    return tamed


# The list search


@dataclass(frozen=True)
class _Node:
    """A node of the code's tree.

    kind: "zero", all bits frozen; "repetition", only the last carries information; "one", all do,
    decided at once where that is right and by its halves elsewhere; "split", anything else.
    start: index of its first bit.
    dynamic: indices of its dynamic frozen bits, if it is decided at once.
    """

    kind: str
    size: int
    start: int
    dynamic: tuple[int, ...] = ()
    left: _Node | None = None
    right: _Node | None = None


def _plan(frozen: NDArray[np.bool_], start: int, dynamic: set[int], rate_one: bool) -> _Node:
    """The tree of a frozen pattern, down to the nodes that can be decided at once."""
    size = len(frozen)
    if frozen[:-1].all():
        kind = "zero" if frozen[-1] else "repetition"
        return _Node(kind, size, start, tuple(sorted(dynamic & {*range(start, start + size)})))
    kind = "one" if rate_one and not frozen.any() else "split"
    half = size // 2
    left = _plan(frozen[:half], start, dynamic, rate_one)
    right = _plan(frozen[half:], start + half, dynamic, rate_one)
    return _Node(kind, size, start, (), left, right)


class _Parities:
    """What dynamic frozen bits depend on: a bit of a 64-bit word for each of them.

    place: word and bit of each dynamic index.
    columns: ``(n, words)``, the dynamic bits that change with each index.
    """

    def __init__(self, code: PolarCode) -> None:
        self.place = {index: divmod(i, 64) for i, index in enumerate(code.dynamic)}
        self.columns = np.zeros((code.n, len(code.dynamic) // 64 + 1), dtype=np.uint64)
        for index, sources in code.dynamic.items():
            word, bit = self.place[index]
            self.columns[list(sources), word] |= np.uint64(1 << bit)


class _ListSearch:
    """The walk through the tree for one chunk of frames; see the head of this module."""

    def __init__(
        self, frames: int, list_size: int, exact: bool, parities: _Parities | None
    ) -> None:
        self.frames = frames
        self.list_size = list_size
        self.exact = exact
        self.parities = parities
        if parities:
            self.state = np.zeros((parities.columns.shape[1], frames), dtype=np.uint64)

    def decide(
        self, node: _Node, llr: Real, base: Real, best_only: bool
    ) -> tuple[Bits, Real, Lanes | None]:
        """Decide the bits of a node in every lane.

        Takes LLRs ``(size, lanes)`` and each lane's base; returns bits ``(size, new lanes)``, the
        new lanes' scores, and the lane each came from (None: nothing moved). With ``best_only``,
        one lane a frame comes back: the best.
        """
        if node.kind == "zero":
            shift = self.known_word(node)
            score = base + sum_halves(_signed(llr, shift))
            origin = self.best(score) if best_only else None
            score = _pick(score, origin)
            zeros = np.zeros((node.size, score.size), np.uint8)
            return _shifted(zeros, shift, origin), score, origin

        if node.kind == "repetition":
            shift = self.known_word(node)
            score = self.branch(sum_halves(_signed(llr, shift)), base)
            kept = self.best(score) if best_only else self.survivors(score)
            bit, origin = self.parents(kept, score.size)
            self.note(node, bit, origin)
            bits = np.broadcast_to(bit, (node.size, bit.size))
            return _shifted(bits, shift, origin), _pick(score, kept), origin

        if node.kind == "one" and (best_only or self.list_size == 1):
            # The best path agrees with every LLR here, and none can overtake it.
            score = base + self.potential(llr)
            origin = self.best(score)
            bits = (_pick(llr, origin) < 0).view(np.uint8)
            self.note(node, bits, origin)
            return bits, _pick(score, origin), origin

        left, right = cast(_Node, node.left), cast(_Node, node.right)
        half = node.size // 2
        if left.kind == "zero":
            shift = self.known_word(left)
            summed = _signed(llr[:half], shift) + llr[half:]
            bits, score, origin = self.decide(right, summed, base, best_only)
            return np.concatenate([_shifted(bits, shift, origin), bits]), score, origin

        if left.kind == "repetition":
            shift = self.known_word(left)
            llr = self.branch(_signed(llr[:half], shift), llr[half:])
            base = self.branch(np.zeros_like(base), base)
            lanes = base.size
            kept = None
            # A last node of rate 1 takes the best lane, which is the same before and after pruning.
            if lanes > self.list_size * self.frames and not (best_only and right.kind == "one"):
                kept = self.survivors(base + self.potential(llr))
            if self.parities:
                self.note(left, *self.parents(kept, lanes))
            bits, score, origin = self.decide(right, _pick(llr, kept), _pick(base, kept), best_only)
            bit, origin = self.parents(_follow(kept, origin), lanes)
            return np.concatenate([_shifted(bits ^ bit, shift, origin), bits]), score, origin

        mixed = self.llr_of_xor(llr[:half], llr[half:])
        base = base + self.potential(llr) - self.potential(mixed)
        left_bits, score, left_origin = self.decide(left, mixed, base, False)
        llr = _pick(llr, left_origin)
        summed = llr[half:] + _signed(llr[:half], left_bits)
        base = score - self.potential(summed)
        bits, score, origin = self.decide(right, summed, base, best_only)
        left_bits = _pick(left_bits, origin)
        return np.concatenate([left_bits ^ bits, bits]), score, _follow(left_origin, origin)

    def known_word(self, node: _Node) -> Bits | None:
        """The word ``(size, lanes)`` that a node's dynamic frozen bits make; None without any."""
        if not (self.parities and node.dynamic):
            return None
        u = np.zeros((node.size, self.state.shape[1]), dtype=np.uint8)
        for index in node.dynamic:
            word, bit = self.parities.place[index]
            u[index - node.start] = self.state[word] >> np.uint64(bit) & np.uint64(1)
        return polar_transform(u)

    def note(self, node: _Node, bits: Bits, origin: Lanes | None) -> None:
        """Add a decided node's information bits to the parities of each lane.

        Args:
            node: a repetition, with ``bits`` its one bit, or a node of rate 1, with its word.
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

    def potential(self, llr: Real) -> Real:
        """What a node adds to each lane's score if all its bits are free: ``(lanes,)``.

        While there is one path it is common to all, and need not be known.
        """
        if llr.shape[1] == self.frames:
            return np.zeros(self.frames, llr.dtype)
        size = np.abs(llr)
        return sum_halves(2 * _log_cosh_half(size) if self.exact else size)

    def llr_of_xor(self, a: Real, b: Real) -> Real:
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
            _log_cosh_half(plus) - _log_cosh_half(minus),
            min_sum + (_log1p_exp_minus(plus) - _log1p_exp_minus(minus)),
        )

    def branch(self, a: Real, b: Real) -> Real:
        """Two lanes for each: path p becomes path 2p, with b + a, and path 2p + 1, with b - a."""
        lanes = (*a.shape[:-1], -1, self.frames)
        a, b = a.reshape(lanes), b.reshape(lanes)
        both = np.empty((*a.shape[:-1], 2, self.frames), a.dtype)
        np.add(b, a, out=both[..., 0, :])
        np.subtract(b, a, out=both[..., 1, :])
        return both.reshape(*a.shape[:-2], -1)

    def parents(self, kept: Lanes | None, lanes: int) -> tuple[Bits, Lanes]:
        """Undo `branch`: the bit decided in each kept lane, and the lane before it."""
        if kept is None:
            kept = np.arange(lanes)
        path, frame = np.divmod(kept, self.frames)
        return (path & 1).astype(np.uint8), (path >> 1) * self.frames + frame

    def best(self, score: Real) -> Lanes | None:
        """The lane of the best path of each frame; the first of equals."""
        if score.size == self.frames:
            return None
        path = score.reshape(-1, self.frames).argmax(axis=0)
        return path * self.frames + np.arange(self.frames)

    def survivors(self, score: Real) -> Lanes | None:
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


def _pick(values: Real, lanes: Lanes | None) -> Real:
    """Rearrange the last axis; None leaves it as it is."""
    if lanes is None:
        return values
    return np.take(values, lanes, axis=-1, mode="clip")  # "clip": no bounds are checked


def _signed(llr: Real, bits: Bits | None) -> Real:
    """LLRs of bits that are sent flipped where ``bits`` is 1."""
    return llr if bits is None else llr * (1 - 2 * bits.view(np.int8))


def _shifted(bits: Bits, shift: Bits | None, lanes: Lanes | None) -> Bits:
    """Bits, flipped where the known word of the lane that each lane came from is 1."""
    return bits if shift is None else bits ^ _pick(shift, lanes)


def _follow(first: Lanes | None, then: Lanes | None) -> Lanes | None:
    """The lane each lane came from, over two moves."""
    return then if first is None else _pick(first, then)


def sum_halves(values: Real) -> Real:
    """Sum over the first axis, a power of two long, in an order that is always the same.

    >>> sum_halves(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [4.0, 6.0]
    """
    while len(values) > 1:
        half = len(values) // 2
        values = values[:half] + values[half:]
    return values[0]


# For box-plus. NumPy's own exp and log differ between CPUs in the last digit; these do not.


def _log1p_exp_minus(x: Real) -> Real:
    """log(1 + exp(-x)) for x >= 0, to 15 digits.

    exp(-x) = 2**q exp(r) with |r| <= log(2) / 2, and log(1 + z) = 2 artanh(z / (2 + z)).
    """
    x = np.minimum(x, 700.0)  # exp(-x) is then below anything it is added to
    q = np.rint(x * -1.4426950408889634)
    r = -x - q * 0.693147180369123816490 - q * 1.90821492927058770002e-10  # log 2 in two parts
    return _log1p(np.ldexp(_series(_EXP, r), q.astype(np.int32)))


def _log_cosh_half(x: Real) -> Real:
    """log cosh(x / 2) for x >= 0, to 15 digits however small x is."""
    y = np.minimum(x, 1.0) / 2
    small = _log1p(y * y * _series(_COSH_MINUS_1, y * y))
    return np.where(x < 1, small, x / 2 + (_log1p_exp_minus(x) - 0.6931471805599453))


def _log1p(z: Real) -> Real:
    """log(1 + z) for 0 <= z <= 1."""
    w = z / (2 + z)
    return 2 * w * _series(_ARTANH, w * w)


def _series(coefficients: list[float], x: Real) -> Real:
    """The sum of coefficients[i] * x**i, by Horner's rule."""
    total = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total *= x
        total += coefficient
    return total


_EXP = [1 / math.factorial(i) for i in range(14)]
_COSH_MINUS_1 = [1 / math.factorial(2 * i + 2) for i in range(8)]
_ARTANH = [1 / (2 * i + 1) for i in range(17)]
