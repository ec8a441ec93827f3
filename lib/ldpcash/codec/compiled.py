"""The walk of `list_search` by min-sum once more, compiled by Numba: for long codes.

NumPy goes through memory once for each operation, and a long code has thousands of them on few
numbers each. Compiled, they are loops over as many frames as stay in the cache. The tree becomes a
list of steps, and one loop takes them for one block of frames after the other::

    tree -> `Program` -> `_walk`, with a function for each kind of step -> bits of the items

Lanes, scores and bases are those of `list_search`, and so is the order of all additions. Min-sum
only adds and compares, which leaves a compiler nothing to round otherwise: decisions are the same
to the last bit. What differs is how things are kept:

- Arrays of LLRs are flat, a row of lanes after the other. Those of nodes of one size are in one
  part of a buffer, which begins at size times the most lanes there are. All before it is free to
  work in, for the nodes within are yet to come.
- A word is numbers of 32 bits in each lane: ``(numbers, lanes)``.
- Every node has a *place*, 2 log2(size), or 1 more if it is a right half. There it leaves its word,
  and its *origin*: the lane that each lane came from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpcash.base.arrays import Bits
from ldpcash.codec.llr import Real
from ldpcash.codec.tree import Node, Parities


def _load() -> Any:
    try:
        import numba
    except Exception:  # not installed, or it does not know this Python or this NumPy
        return None
    return numba


numba = _load()  #: None where there is none, and `list_search` does it all

Numbers = NDArray[Any]  # whole ones: steps, indices, lanes, words

_KNOWN, _FROZEN, _REPETITION, _BRANCH, _FREE, _MIX, _SUM, _JOIN = range(8)
_FIELDS = [
    ("kind", np.int64),  # of the step, one of those above
    ("size", np.int64),  # of its node
    ("place", np.int64),  # of its node
    ("left", np.int64),  # place of the node's left half
    ("paths", np.int64),  # of each frame, before the step
    ("remain", np.int64),  # and after it
    ("rebase", np.bool_),  # whether the potential of the LLRs that it makes is taken off the base
    ("weigh", np.bool_),  # whether that potential is needed at all
    ("end", np.int64),  # index after the bits that are decided
    ("first", np.int64),  # the node's dynamic bits, in the list of all: the first
    ("stop", np.int64),  # and the one after the last
]
_FRAMES = 128  # of a block: with fewer, to take a step costs more than what it does
_VALUES = 2**22  # LLRs of a block at all levels


class Program:
    """The steps of a walk by min-sum.

    Args:
        root: the tree.
        list_size: paths that survive each decision.
        parities: of the code's dynamic frozen bits; None without any.
        best_only: whether the best path is all that is wanted.

    >>> from ldpcash.codec.tree import tree
    >>> program = Program(tree(np.array([True, False, False, False])), 2, None, best_only=True)
    >>> program.steps["kind"].tolist()  # branch, sum, free, join
    [3, 6, 4, 7]
    """

    def __init__(
        self, root: Node, list_size: int, parities: Parities | None, best_only: bool
    ) -> None:
        self.list_size, self.parities = list_size, parities
        self._steps: list[tuple[int | bool, ...]] = []
        self._dynamic: list[tuple[int, int, int]] = []
        self.paths = self._add(root, 0, 1, best_only)  #: of each frame, that are left
        self.steps = np.array(self._steps, dtype=_FIELDS)
        #: of each dynamic bit: its index in its node, its word and its bit in `Parities`
        self.dynamic = np.array(self._dynamic, dtype=np.int64).reshape(-1, 3)
        columns = parities.columns if parities else np.zeros((0, 0), dtype=np.uint64)
        self.columns = np.ascontiguousarray(columns)

    def decide(self, llr: Real, info: NDArray[Any]) -> Bits:
        """``(size, frames)`` LLRs to those bits of u that ``info`` tells: ``(frames, paths, k)``.

        >>> from ldpcash.codec.tree import tree
        >>> program = Program(tree(np.array([False, False])), 2, None, best_only=False)
        >>> program.decide(np.array([[3.0], [-1.0]]), np.array([0, 1])).tolist()
        [[[0, 0], [1, 1]]]
        """
        bits = np.empty((llr.shape[1], self.paths, len(info)), dtype=np.uint8)
        most = int(self.steps["remain"].max())  # paths; a list longer than 2**k is never full
        block = max(1, min(_FRAMES, llr.shape[1], _VALUES // (len(llr) * most)))
        _walk(llr, self.steps, self.dynamic, self.columns, most, block, info, bits)
        return bits

    def _add(self, node: Node, side: int, paths: int, last: bool) -> int:
        """Add the steps that decide a node; return how many paths remain."""
        kind = self._kind(node, last)
        if kind == "frozen":
            return self._step(_FROZEN, node, side, paths, 1 if last else paths)
        if kind == "repetition":
            limit = 1 if last else self.list_size
            return self._step(_REPETITION, node, side, paths, min(2 * paths, limit))
        if kind == "free":
            return self._step(_FREE, node, side, paths, 1)
        left, right = node.children
        two = kind == "two_halves"
        if two:
            self._step(_MIX, node, side, paths, paths, True, True)
            remain = self._add(left, 0, paths, False)
        elif kind == "frozen_half":
            remain = self._step(_KNOWN, left, 0, paths, paths)
        else:
            # A last node that is free takes the best lane, so no other has to survive until there.
            limit = 1 if last and right.kind == "free" else self.list_size
            remain = self._step(_BRANCH, left, 0, paths, min(2 * paths, limit))
        weigh = two or self._kind(right, last) in ("two_halves", "free")
        self._step(_SUM, node, side, paths, remain, two, weigh)
        remain = self._add(right, 1, remain, last)
        return self._step(_JOIN, node, side, remain, remain)

    def _kind(self, node: Node, last: bool) -> str:
        by_halves = node.kind == "free" and not last and self.list_size > 1
        return node.halves if by_halves else node.kind

    def _step(
        self,
        kind: int,
        node: Node,
        side: int,
        paths: int,
        remain: int,
        rebase: bool = False,
        weigh: bool = False,
    ) -> int:
        first = len(self._dynamic)
        if self.parities:
            for index in node.dynamic:
                self._dynamic.append((index - node.start, *self.parities.place[index]))
        left = 2 * node.size.bit_length() - 4
        place, end = left + 2 + side, node.start + node.size
        step = (kind, node.size, place, left, paths, remain, rebase, weigh, end, first)
        self._steps.append((*step, len(self._dynamic)))
        return remain


def _compiled(function: Callable[..., Any]) -> Any:
    """Have a function compiled when it is first called; without Numba it stays as it is."""
    if numba is None:
        return function
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # there is no place to keep what was compiled
        return numba.njit(error_model="numpy")(function)


@_compiled
def _walk(
    llr: Real,
    steps: Numbers,
    dynamic: Numbers,
    columns: Numbers,
    most_paths: int,
    block: int,
    info: Numbers,
    bits: Bits,
) -> None:
    """``(size, frames)`` LLRs to ``(frames, paths, k)`` bits, a block of frames at a time."""
    size, total = llr.shape
    most = most_paths * block
    numbers = (size + 31) // 32
    places = steps[len(steps) - 1]["place"] + 1
    values = np.empty(size * (most + block), llr.dtype)  # LLRs, see the top
    words = np.empty((places, numbers, most), np.uint32)
    origins = np.empty((places, most), np.uint32)
    known = np.empty((numbers, most), np.uint32)  # word of dynamic bits
    state = np.empty((columns.shape[1], most), np.uint64)  # parities of each lane
    base = np.empty(most, llr.dtype)  # or score, whichever it is in `list_search`
    worth = np.empty(most, llr.dtype)  # potential of the LLRs that were made last
    plus = np.empty(2 * most, llr.dtype)  # what the two branches of a lane are worth
    minus = np.empty(most, llr.dtype)
    scores = np.empty(2 * most, llr.dtype)  # of candidates
    ordered = np.empty(2 * most, llr.dtype)  # room to sort them
    kept = np.zeros(2 * most + block, np.uint32)  # those that survive, and room for others
    counters = np.empty((3, block), np.int64)  # of each frame, while they are chosen
    for start in range(0, total, block):
        frames = min(block, total - start)
        for i in range(size):
            for t in range(frames):
                values[size * most + i * frames + t] = llr[i, start + t]
        for lane in range(most):
            base[lane] = worth[lane] = 0
            for number in range(len(state)):
                state[number, lane] = 0
        for number in range(len(steps)):
            step = steps[number]
            kind, length, paths, remain = step["kind"], step["size"], step["paths"], step["remain"]
            half, lanes, after = length // 2, paths * frames, remain * frames
            word, origin, left = words[step["place"]], origins[step["place"]], step["left"]
            here = values[length * most : length * most + length * lanes]
            free = values[: length * most]
            if kind == _MIX:
                mixed = free[half * most : half * most + half * lanes]
                _mix(here, mixed)
                for lane in range(lanes):
                    base[lane] += worth[lane]
                _weigh(mixed, paths, lanes, free, worth)
                for lane in range(lanes):
                    base[lane] -= worth[lane]
            elif kind == _SUM:
                summed = free[half * most : half * most + half * after]
                _sum(here, lanes, words[left], origins[left], summed, after, frames)
                if step["weigh"]:
                    _weigh(summed, remain, after, free, worth)
                if step["rebase"]:
                    for lane in range(after):
                        base[lane] -= worth[lane]
            elif kind == _JOIN:
                first, then = origins[left], origins[left + 1]
                _join(half, after, words[left], words[left + 1], then, word)
                for lane in range(after):
                    origin[lane] = first[then[lane]]
            else:
                _know(known, length, lanes, dynamic[step["first"] : step["stop"]], state)
                branches = 1 if kind in (_REPETITION, _BRANCH) else 0
                candidates = paths << branches
                if kind in (_FROZEN, _REPETITION):
                    _signed_sum(here, known, lanes, free, plus, minus)
                    _score(base, plus, minus, branches, paths, frames, scores)
                elif kind == _FREE:
                    _score(base, worth, worth, branches, paths, frames, scores)
                elif kind == _BRANCH and remain < candidates:  # of its node, this is the left half
                    whole = values[2 * length * most : 2 * length * (most + lanes)]
                    _branch_potentials(whole, known, lanes, values, plus, minus)
                    _score(base, plus, minus, branches, paths, frames, scores)
                _survivors(scores, candidates, remain, frames, ordered, plus, counters, kept)
                _settle(kept, branches, length, remain, frames, known, word, origin)
                if kind == _BRANCH:
                    for lane in range(lanes):
                        ordered[lane] = base[lane]
                    for lane in range(after):
                        base[lane] = ordered[origin[lane]]
                elif kind != _KNOWN:
                    for lane in range(after):
                        base[lane] = scores[kept[lane] * frames + lane % frames]
                if kind == _FREE:
                    _agree(here, lanes, origin, word, after)
                if columns.shape[1] and kind >= _REPETITION:
                    begin = step["end"] - (length if kind == _FREE else 1)
                    _note(columns[begin : step["end"]], kept, origin, word, after, state)
        word = words[steps[len(steps) - 1]["place"]]
        paths = bits.shape[1]
        _transform(word, size, paths * frames)
        for t in range(frames):
            for p in range(paths):
                for j in range(info.size):
                    number, place = info[j] >> 5, np.uint32(info[j] & 31)
                    bits[start + t, p, j] = word[number, p * frames + t] >> place & np.uint32(1)


# LLRs and scores


@_compiled
def _mix(llr: Real, out: Real) -> None:
    """LLRs of w where x = (w + y, y): sign(a b) min(|a|, |b|)."""
    first, second = llr[: out.size], llr[out.size :]
    for i in range(out.size):
        a, b = first[i], second[i]
        low, high = (a, b) if a < b else (b, a)
        out[i] = low if low > -high else -high


@_compiled
def _sum(
    llr: Real, before: int, words: Numbers, origin: Numbers, out: Real, after: int, frames: int
) -> None:
    """LLRs of y where x = (w + y, y) and w is decided: b + (1 - 2 w) a."""
    half = out.size // after
    for i in range(half):
        a = llr[i * before : (i + 1) * before]
        b = llr[(half + i) * before : (half + i + 1) * before]
        row, word, mask = out[i * after : (i + 1) * after], words[i >> 5], np.uint32(1 << (i & 31))
        if before == frames:  # all are from one path, so nothing has to be looked up
            for first in range(0, after, frames):
                x, w = row[first : first + frames], word[first : first + frames]
                for t in range(frames):
                    x[t] = b[t] - a[t] if w[t] & mask else b[t] + a[t]
        else:
            for lane in range(after):
                j = origin[lane]
                row[lane] = b[j] - a[j] if word[lane] & mask else b[j] + a[j]


@_compiled
def _fold(values: Real, rows: int, lanes: int) -> None:
    """`sum_halves`, in place: the sum is left in the first row."""
    while rows > 1:
        rows //= 2
        first, second = values[: rows * lanes], values[rows * lanes : 2 * rows * lanes]
        for i in range(first.size):
            first[i] += second[i]


@_compiled
def _weigh(llr: Real, paths: int, lanes: int, free: Real, worth: Real) -> None:
    """The potential of LLRs; while there is one path, it need not be known."""
    if paths == 1:
        for lane in range(lanes):
            worth[lane] = 0
    elif llr.size == lanes:
        for lane in range(lanes):
            worth[lane] = abs(llr[lane])
    else:
        half = llr.size // 2
        first, second, sums = llr[:half], llr[half:], free[:half]
        for i in range(half):
            sums[i] = abs(first[i]) + abs(second[i])
        _fold(sums, half // lanes, lanes)
        for lane in range(lanes):
            worth[lane] = sums[lane]


@_compiled
def _signed_sum(llr: Real, known: Numbers, lanes: int, free: Real, plus: Real, minus: Real) -> None:
    """The sum of LLRs whose signs change where the known word is 1, and its opposite."""
    size = llr.size // lanes
    for i in range(size):
        word, mask = known[i >> 5], np.uint32(1 << (i & 31))
        row, signed = llr[i * lanes : (i + 1) * lanes], free[i * lanes : (i + 1) * lanes]
        for lane in range(lanes):
            signed[lane] = -row[lane] if word[lane] & mask else row[lane]
    _fold(free, size, lanes)
    for lane in range(lanes):
        plus[lane] = free[lane]
        minus[lane] = -free[lane]


@_compiled
def _branch_potentials(
    llr: Real, known: Numbers, lanes: int, free: Real, plus: Real, minus: Real
) -> None:
    """The potentials of b + a and of b - a, with the signs of a changed as above."""
    half = llr.size // 2 // lanes
    sums, differences = free[: half * lanes], free[half * lanes : 2 * half * lanes]
    for i in range(half):
        word, mask, row = known[i >> 5], np.uint32(1 << (i & 31)), i * lanes
        a, b = llr[row : row + lanes], llr[half * lanes + row : half * lanes + row + lanes]
        x, y = sums[row : row + lanes], differences[row : row + lanes]
        for lane in range(lanes):
            signed = -a[lane] if word[lane] & mask else a[lane]
            x[lane] = abs(b[lane] + signed)
            y[lane] = abs(b[lane] - signed)
    _fold(sums, half, lanes)
    _fold(differences, half, lanes)
    for lane in range(lanes):
        plus[lane] = sums[lane]
        minus[lane] = differences[lane]


@_compiled
def _score(
    base: Real, plus: Real, minus: Real, branches: int, paths: int, frames: int, scores: Real
) -> None:
    """Scores of candidates: of paths, or of the branches 2 p and 2 p + 1 of path p."""
    for p in range(paths):
        first, then = p * frames, (p << branches) * frames
        one, two = scores[then : then + frames], scores[then + frames : then + 2 * frames]
        before, more, less = base[first:], plus[first:], minus[first:]
        for t in range(frames):
            one[t] = before[t] + more[t]
        if branches:
            for t in range(frames):
                two[t] = before[t] + less[t]


# Lanes


@_compiled
def _survivors(
    scores: Real,
    count: int,
    limit: int,
    frames: int,
    ordered: Real,
    bounds: Real,
    counters: Numbers,
    kept: Numbers,
) -> None:
    """The candidates of each frame with the largest scores, in order; of equals the first ones."""
    if count <= limit:
        for c in range(count):
            for t in range(frames):
                kept[c * frames + t] = c
        return
    for i in range(count * frames):
        ordered[i] = scores[i]
        kept[i] = 0
    _sort_halves(ordered, count, frames)
    threshold, below = bounds[:frames], bounds[frames : 2 * frames]
    _nth_largest(limit, ordered, count, frames, threshold)
    _nth_largest(limit + 1, ordered, count, frames, below)
    step, place, room = counters[0], counters[1], counters[2]  # room: for equals of the threshold
    ties = 0
    for t in range(frames):
        place[t] = t
        room[t] = limit
        ties += 1 if threshold[t] == below[t] else 0
    if ties:
        for c in range(count):
            for t in range(frames):
                room[t] -= 1 if scores[c * frames + t] > threshold[t] else 0
    for c in range(count):
        row = scores[c * frames : (c + 1) * frames]
        for t in range(frames):  # apart from the last loop, so that neither has to guess a branch
            step[t] = frames if row[t] >= threshold[t] else 0
        if ties:
            for t in range(frames):
                if row[t] == threshold[t]:
                    step[t] = frames if room[t] > 0 else 0
                    room[t] -= 1
        for t in range(frames):
            kept[place[t]] = c
            place[t] += step[t]


@_compiled
def _sort_halves(values: Real, count: int, frames: int) -> None:
    """Sort the values of each frame at even places, and those at odd places.

    It is Batcher's merge exchange, Knuth 5.2.2, algorithm M, but for its last round.
    """
    top = 1
    while 2 * top < count:
        top *= 2
    p = top
    while p > 1:
        q, r, d = top, 0, p
        while d > 0:
            for i in range(r, count - d, 2 * p):
                run = min(p, count - d - i) * frames
                low, high = values[i * frames :], values[(i + d) * frames :]
                low, high = low[:run], high[:run]
                for j in range(run):
                    a, b = low[j], high[j]
                    low[j] = a if a < b else b
                    high[j] = b if a < b else a
            d = q - p
            q //= 2
            r = p
        p //= 2


@_compiled
def _nth_largest(n: int, values: Real, count: int, frames: int, out: Real) -> None:
    """Of two sorted sequences together: the largest of all that i of one and n - i of the other
    do not fall below."""
    evens, odds = (count + 1) // 2, count // 2
    for t in range(frames):
        out[t] = -np.inf
    for i in range(max(0, n - odds), min(n, evens) + 1):
        even, odd = 2 * (evens - i), 2 * (odds - n + i) + 1
        first = values[(even if i > 0 else odd) * frames :]
        second = values[(odd if i < n else even) * frames :]
        for t in range(frames):
            low = first[t] if first[t] < second[t] else second[t]
            out[t] = low if low > out[t] else out[t]


@_compiled
def _settle(
    kept: Numbers,
    branches: int,
    size: int,
    remain: int,
    frames: int,
    known: Numbers,
    word: Numbers,
    origin: Numbers,
) -> None:
    """Where each candidate that is kept came from, and its word: the known one, or its flip."""
    for p in range(remain):
        of, out = kept[p * frames : (p + 1) * frames], origin[p * frames : (p + 1) * frames]
        for t in range(frames):
            out[t] = (of[t] >> branches) * frames + t
    full = np.uint32(0xFFFFFFFF if size >= 32 else (1 << size) - 1)
    for i in range((size + 31) // 32):
        x, before = word[i], known[i]
        for lane in range(remain * frames):
            x[lane] = before[origin[lane]] ^ (full if kept[lane] & branches else np.uint32(0))


@_compiled
def _agree(llr: Real, before: int, origin: Numbers, word: Numbers, after: int) -> None:
    """The word that agrees with every LLR."""
    for i in range(llr.size // before):
        row, x = llr[i * before : (i + 1) * before], word[i >> 5]
        for lane in range(after):
            bit = np.uint32(1 if row[origin[lane]] < 0 else 0) << np.uint32(i & 31)
            x[lane] = x[lane] | bit if i & 31 else bit


@_compiled
def _join(
    half: int, lanes: int, left: Numbers, right: Numbers, then: Numbers, word: Numbers
) -> None:
    """The word (w + y, y), where w has moved as ``then`` tells."""
    if half < 32:
        w, y, x = left[0], right[0], word[0]
        for lane in range(lanes):
            x[lane] = w[then[lane]] ^ y[lane] ^ (y[lane] << np.uint32(half))
        return
    numbers = half // 32
    for i in range(numbers):
        w, y, x = left[i], right[i], word[i]
        for lane in range(lanes):
            x[lane] = w[then[lane]] ^ y[lane]
        x = word[numbers + i]
        for lane in range(lanes):
            x[lane] = y[lane]


# Dynamic frozen bits


@_compiled
def _know(known: Numbers, size: int, lanes: int, dynamic: Numbers, state: Numbers) -> None:
    """The word that a node's dynamic frozen bits make."""
    for i in range((size + 31) // 32):
        row = known[i]
        for lane in range(lanes):
            row[lane] = 0
    if len(dynamic) == 0:
        return
    for d in range(len(dynamic)):
        i, number, place = dynamic[d]
        for lane in range(lanes):
            bit = np.uint32(state[number, lane] >> np.uint64(place) & np.uint64(1))
            known[i >> 5, lane] |= bit << np.uint32(i & 31)
    _transform(known, size, lanes)


@_compiled
def _note(
    columns: Numbers, kept: Numbers, origin: Numbers, word: Numbers, lanes: int, state: Numbers
) -> None:
    """Add the bits that were decided, one or a word of them, to the parities of each lane."""
    size, numbers = columns.shape
    u = word.copy()
    if size == 1:
        for lane in range(lanes):
            u[0, lane] = kept[lane] & 1
    _transform(u, size, lanes)
    for number in range(numbers):
        before = state[number].copy()
        for lane in range(lanes):
            value = before[origin[lane]]
            for i in range(size):
                if u[i >> 5, lane] >> np.uint32(i & 31) & np.uint32(1):
                    value ^= columns[i, number]
            state[number, lane] = value


@_compiled
def _transform(word: Numbers, size: int, lanes: int) -> None:
    """`polar_transform` of a word, in place."""
    numbers = (size + 31) // 32
    half = 1
    while half < min(size, 32):
        mask = np.uint32(0xFFFFFFFF // ((1 << half) + 1))  # every other run of bits
        for i in range(numbers):
            for lane in range(lanes):
                word[i, lane] ^= word[i, lane] >> np.uint32(half) & mask
        half *= 2
    half = 1
    while half < numbers:
        for i in range(numbers):
            if i & half == 0:
                for lane in range(lanes):
                    word[i, lane] ^= word[i + half, lane]
        half *= 2
