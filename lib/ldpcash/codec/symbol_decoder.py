"""A list decoder for codes of symbols: whole symbols are decided, not bits.

`SCLDecoder` can decode such codes too, but it takes the bits of a symbol one by one, and at the low
signal-to-noise ratio of a single coordinate each of them is nearly unknown before the others are.
Here a block of 2**m coordinates gives the probability of each of its 2**m symbols, and those go
through the polar transform as Arikan's LLRs do::

    LLRs (n) -> one Walsh-Hadamard transform a block -> P(symbol of each block)        `_symbols`
    pair of blocks (a, b), which carry (w + y, y):
        P(w) = sum over y of Pa(w + y) Pb(y)         the pointwise product of their transforms
        P(y | w) = Pa(w + y) Pb(y), normalized       once w is decided, in each path
    a symbol of u -> its possible values, in each path -> the ``list_size`` likeliest paths survive

How likely a path is, is the product of all its P. Every path of every frame is a *lane*, as in
`ldpcash.codec.list_search`: lane ``p * frames + t`` is path p of frame t.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, Counts, Reals, batches
from ldpcash.base.checks import whole_number
from ldpcash.codec.hadamard import place_of, symbol_width, walsh_hadamard
from ldpcash.codec.llr import WORKING_VALUES, as_frames, keep_freed_memory
from ldpcash.codec.polar import PolarCode

_FLOOR = 1e-30  # a symbol that seems less likely than this may still be the right one
_AT_ONCE = 2**16  # LLRs of a code of one block: they stay in the cache


class SymbolDecoder:
    """Successive-cancellation list decoder over symbols, for codes of `ldpcash.codec.hadamard`.

    A code of one block it decodes by maximum likelihood, with one Walsh-Hadamard transform; of
    equals the first item wins. With more blocks the scale of the LLRs matters, and it is set by
    each frame itself: noise has the variance that is seen, and the signal is taken to be as strong
    as a long code needs at least. A stronger one is decoded all the more surely.

    Args:
        code: made of symbols, such as `code_of_symbols` or `hadamard_code` return.
        list_size: how many paths survive each decision, at least 1.

    >>> from ldpcash.codec.hadamard import hadamard_code
    >>> code = hadamard_code(8)
    >>> item = np.array([1, 0, 1, 1, 0, 0, 1, 0], dtype=np.uint8)
    >>> SymbolDecoder(code).decode(1.0 - 2.0 * code.encode(item))
    array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8)
    """

    def __init__(self, code: PolarCode, list_size: int = 16) -> None:
        self.width = symbol_width(code)
        if self.width == 1:
            raise ValueError(f"code = {code!r}: is not made of symbols, see code_of_symbols")
        keep_freed_memory()
        self.code = code
        self.list_size = whole_number("list_size", list_size, 1)
        self.blocks = code.n >> self.width
        self._leaves = [_Leaf(code, block, self.width) for block in range(self.blocks)]
        room = _AT_ONCE if self.blocks == 1 else WORKING_VALUES // (4 * self.list_size)
        self.frames_per_chunk = max(1, room // code.n)
        # For long codes the signal-to-noise ratio has to be sqrt(2 k log 2) at least.
        self._snr = 1.15 * math.sqrt(2 * math.log(2) * code.k)

    def decode(self, llr: ArrayLike) -> Bits:
        """The item of the likeliest path: ``(..., n)`` LLRs, all finite, to ``(..., k)`` bits."""
        frames, shape = as_frames(llr, self.code.n)
        items = np.empty((len(frames), self.code.k), dtype=np.uint8)
        for part in batches(len(frames), self.frames_per_chunk):
            found = self._search(frames[part], best_only=True)
            best = found.score.reshape(-1, found.frames).argmax(axis=0)
            items[part] = found.bits.T[best * found.frames + np.arange(found.frames)]
        return items.reshape(*shape, self.code.k)

    def decode_list(self, llr: ArrayLike) -> tuple[Bits, NDArray[np.float64]]:
        """All surviving paths, likeliest first, no two alike.

        Returns bits ``(..., L, k)`` and metrics ``(..., L)``, with L the list size, or 2**k where
        that is less. A metric is -log of the path's probability, up to a constant of each frame; on
        its way a path loses no more than 70 with a symbol, however unlikely that is.

        >>> from ldpcash.codec.hadamard import hadamard_code
        >>> bits, metrics = SymbolDecoder(hadamard_code(2), 2).decode_list([0.0, -2.0, -1.0, -1.0])
        >>> bits.tolist(), metrics.tolist()
        ([[1, 1], [1, 0]], [-1.0, -0.0])
        """
        frames, shape = as_frames(llr, self.code.n)
        width = min(self.list_size, 2**self.code.k)
        bits = np.empty((len(frames), width, self.code.k), dtype=np.uint8)
        metrics = np.empty((len(frames), width))
        for part in batches(len(frames), self.frames_per_chunk):
            found = self._search(frames[part], best_only=False)
            metric = -found.score.reshape(width, -1)
            order = np.argsort(metric, axis=0, kind="stable")
            metrics[part] = np.take_along_axis(metric, order, axis=0).T
            paths = found.bits.reshape(self.code.k, width, -1)
            bits[part] = np.take_along_axis(paths, order[None], axis=1).transpose(2, 1, 0)
        return bits.reshape(*shape, width, self.code.k), metrics.reshape(*shape, width)

    def _search(self, frames: Reals, best_only: bool) -> _Search:
        """``(frames, n)`` LLRs to the paths that survive; or to the best one of each frame."""
        search = _Search(self._leaves, self.code.k, len(frames), self.list_size, best_only)
        scores = self._symbols(frames)
        if self.blocks == 1:
            search.decide_leaf(0, scores[0])
        else:
            likely = np.exp(scores - scores.max(axis=1, keepdims=True))
            search.decide(_Messages(_normalized(likely)), 0)
        return search

    def _symbols(self, frames: Reals) -> Reals:
        """``(frames, n)`` LLRs to log P of each symbol, up to a constant: (blocks, 2**m, frames).

        Coordinate c of a block is the sum of those bits of its symbol at which c is 0. So
        backwards, coordinates are numbered by the bits that they sum.
        """
        if not np.isfinite(frames).all():
            raise ValueError("llr holds NaN or infinity: this decoder needs finite LLRs")
        by_block = frames.reshape(len(frames), self.blocks, 1 << self.width)[:, :, ::-1]
        llr = by_block.transpose(1, 2, 0).copy()
        if self.blocks == 1:
            most = np.finfo(llr.dtype).max / (4 * self.code.n)  # so that sums of all are finite
            np.clip(llr, -most, most, out=llr)
        else:
            llr = llr.astype(np.float64)
            peak = np.abs(llr).max(axis=(0, 1))
            llr /= np.where(peak > 0, peak, 1)
            live = np.maximum(np.count_nonzero(llr, axis=(0, 1)), 1)
            power = np.square(llr).sum(axis=(0, 1)) / live
            seen = np.sqrt(power / (1 + self._snr**2 / live))  # of the noise
            llr *= 2 * self._snr / np.sqrt(live) / np.where(seen > 0, seen, 1)
            llr = llr.astype(np.float32)  # which decides as double precision does, in half the time
        return walsh_hadamard(llr) / 2


class _Leaf:
    """A symbol of u: which values it can have.

    Its information bits are free. Its dynamic frozen bits follow from information bits before them,
    which may be in the same symbol or in earlier ones.
    """

    def __init__(self, code: PolarCode, block: int, width: int) -> None:
        places = [place_of(int(index), width) for index in code.info]
        mine = [j for j, (home, _) in enumerate(places) if home == block]
        self.bits = slice(mine[0], mine[-1] + 1) if mine else slice(0, 0)  #: of the item
        number = {int(index): j for j, index in enumerate(code.info)}
        flips = {j: 1 << places[j][1] for j in mine}
        self.dynamic: list[tuple[int, list[int]]] = []  #: values, and the item's bits they follow
        for index, sources in code.dynamic.items():
            home, bit = place_of(index, width)
            if home == block:
                follows = [number[source] for source in sources]
                for j in flips.keys() & follows:
                    flips[j] |= 1 << bit
                earlier = [j for j in follows if j not in flips]
                if earlier:
                    self.dynamic.append((1 << bit, earlier))
        #: the possible values if no earlier bit is 1, in the order of the item's bits
        self.values = np.zeros(1, dtype=np.intp)
        for j in mine[::-1]:
            self.values = np.concatenate([self.values, self.values ^ flips[j]])
        self.known = len(self.values) == 1 and not self.dynamic


class _Messages:
    """Probabilities of the symbols of some blocks, or their transforms, whichever is there.

    ``(blocks, 2**m, lanes)``. Transforms are computed when they are needed, and often they are not.
    """

    def __init__(self, likely: Reals | None = None, transform: Reals | None = None) -> None:
        self._likely, self._transform = likely, transform
        given: Any = likely if transform is None else transform
        self.blocks, self.size, self.lanes = given.shape

    @property
    def likely(self) -> Reals:
        if self._likely is None:
            assert self._transform is not None
            self._likely = _normalized(walsh_hadamard(self._transform.copy()))
        return self._likely

    @property
    def transform(self) -> Reals:
        if self._transform is None:
            self._transform = walsh_hadamard(self.likely.copy())
        return self._transform

    def halves(self) -> tuple[_Messages, _Messages]:
        half = self.blocks // 2
        both = [self._likely, self._transform]
        first, second = ([x if x is None else x[part] for x in both] for part in _cut(half))
        return _Messages(*first), _Messages(*second)


class _Search:
    """The walk for one chunk of frames."""

    def __init__(
        self, leaves: list[_Leaf], k: int, frames: int, list_size: int, best_only: bool
    ) -> None:
        self.leaves = leaves
        self.frames = frames
        self.list_size = list_size
        self.best_only = best_only
        self.score: Reals = np.zeros(frames, np.float32)  # (lanes,): log P of each path
        #: (k, lanes): the item, as far as it is decided
        self.bits: NDArray[np.uint8] = np.zeros((k, frames), dtype=np.uint8)

    def decide(self, messages: _Messages, start: int) -> tuple[Counts, Counts | None]:
        """Decide symbols start, start + 1, ... of u.

        Returns the symbols of the blocks that they make, ``(blocks, lanes)``, and the lane that
        each lane came from; None if nothing moved.
        """
        blocks = messages.blocks
        leaves = self.leaves[start : start + blocks]
        if all(leaf.known for leaf in leaves):
            if messages.lanes > self.frames:  # while there is one path, all paths share its loss
                self.score = self.score + np.log(messages.likely[:, 0]).sum(axis=0)
            return np.zeros((blocks, messages.lanes), dtype=np.intp), None
        if all(leaf.known for leaf in leaves[:-1]):  # then all blocks carry the same symbol
            log_likely = np.log(messages.likely).sum(axis=0)
            symbol, from_lane = self.decide_leaf(start + blocks - 1, log_likely)
            return np.broadcast_to(symbol, (blocks, symbol.size)), from_lane
        a, b = messages.halves()
        w, moved = self.decide(_Messages(transform=a.transform * b.transform), start)
        first, second = _pick(a.likely, moved), _pick(b.likely, moved)
        shifted: Counts = np.arange(messages.size)[:, None] ^ w[:, None]
        product: Reals = np.take_along_axis(first, shifted, axis=1)
        product *= second
        y, origin = self.decide(_Messages(_normalized(product)), start + blocks // 2)
        return np.concatenate([_pick(w, origin) ^ y, y]), _follow(moved, origin)

    def decide_leaf(self, number: int, log_likely: Reals) -> tuple[Counts, Counts]:
        """Decide a symbol of u, ``(2**m, lanes)``, in every lane.

        Returns the symbol in each lane that is left, and the lane that it came from.
        """
        leaf, lanes = self.leaves[number], log_likely.shape[1]
        offset = np.zeros(lanes, dtype=np.intp)
        for flip, sources in leaf.dynamic:
            offset ^= flip * np.bitwise_xor.reduce(self.bits[sources], axis=0).astype(np.intp)
        values = leaf.values[:, None] ^ offset if leaf.dynamic else leaf.values
        scores = log_likely[values] if values.ndim == 1 else _at(log_likely, values)
        if number or lanes > self.frames:
            scores = scores + self.score
        paths = lanes // self.frames
        # Path p with value v becomes candidate p * values + v: candidates are in order of items.
        candidates = scores.reshape(-1, paths, self.frames).swapaxes(0, 1)
        candidates = candidates.reshape(-1, self.frames)
        best_only = self.best_only and number == len(self.leaves) - 1  # and nothing comes after it
        kept: Counts = self._best(candidates, 1 if best_only else self.list_size)
        path, chosen = np.divmod(kept, len(leaf.values))
        origin = (path * self.frames + np.arange(self.frames)).ravel()
        value = chosen.ravel()
        self.score = np.take_along_axis(candidates, kept, axis=0).ravel()
        self.bits = _pick(self.bits, origin)
        count = leaf.bits.stop - leaf.bits.start
        self.bits[leaf.bits] = value >> np.arange(count)[::-1, None] & 1
        return leaf.values[value] ^ offset[origin], origin

    def _best(self, candidates: Reals, limit: int) -> NDArray[np.intp]:
        """The best candidates of each frame, ``(limit, frames)``, in their order."""
        count = len(candidates)
        if limit == 1:
            return candidates.argmax(axis=0)[None]
        if count <= limit:
            return np.broadcast_to(np.arange(count)[:, None], candidates.shape)
        worst = np.partition(candidates, count - limit, axis=0)[count - limit]
        kept = candidates >= worst
        if np.count_nonzero(kept) > limit * self.frames:  # equals: the first ones stay
            above = candidates > worst
            equal = kept & ~above
            kept = above | (equal & (np.cumsum(equal, axis=0) <= limit - above.sum(axis=0)))
        return np.flatnonzero(kept.T).reshape(self.frames, limit).T % count


def _normalized(likely: Reals) -> Reals:
    """Probabilities, none of them 0 or, by rounding, below."""
    np.maximum(likely, 0, out=likely)
    likely /= likely.sum(axis=1, keepdims=True)
    return np.maximum(likely, _FLOOR, out=likely)


def _cut(half: int) -> tuple[slice, slice]:
    return slice(0, half), slice(half, None)


def _at(values: Reals, places: Counts) -> Reals:
    return np.take_along_axis(values, places, axis=0)


def _pick(values: NDArray[Any], origin: Counts | None) -> NDArray[Any]:
    """Rearrange the last axis; None leaves it as it is."""
    return values if origin is None else np.take(values, origin, axis=-1)


def _follow(first: Counts | None, then: Counts | None) -> Counts | None:
    """The lane each lane came from, over two moves."""
    return then if first is None else _pick(first, then)
