"""The audit: tries to prove a claimed (epsilon, delta) wrong, from nothing but reports.

A randomizer is private if no event E tells two inputs apart: P_a(E) <= e^epsilon P_b(E) + delta. So
an event for which (P_a(E) - delta) / P_b(E) is surely larger than e^epsilon proves a claim wrong.
The event is chosen on one half of the reports and judged on the other, so that the choice cannot
flatter the result::

    first half   -> scores of reports -> the score and threshold that tell the inputs apart best
    second half  -> counts of the event, under both inputs -> Clopper-Pearson -> epsilon at least

An audit that finds nothing proves nothing: it looks at one pair of inputs and at the scores that it
has. `ldpcash.beyond.faults` has mistakes that it is known to find.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from ldpcash.base.arrays import Bits, Reals, batches, bits_of
from ldpcash.base.checks import fraction, whole_number
from ldpcash.codec.polar import PolarCode
from ldpcash.histogram.prot_channels import ProtChannels
from ldpcash.protocols.protocol import Protocol

Randomizer = Callable[[Any, int, Generator], Reals]  # an input, how many reports -> (reports, n)
Score = Callable[[Reals], Reals]  # reports -> a number for each

_AT_ONCE = 8192  # reports
_THRESHOLDS = 300  # tried for each score


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    >>> Audit(epsilon=1.3, claimed=1.0, favours="a", hits=(400, 100), judged=1000).refuted
    True
    """

    epsilon: float  #: the privacy loss is at least this, with the stated confidence
    claimed: float
    favours: str  #: "a" or "b": the input under which the event is the more likely
    hits: tuple[int, int]  #: judged reports with the event: of that input, and of the other
    judged: int  #: reports of each input

    @property
    def refuted(self) -> bool:
        """Whether the claim is wrong, with the stated confidence."""
        return self.epsilon > self.claimed


def audit(
    randomizer: Randomizer,
    input_a: Any,
    input_b: Any,
    epsilon: float,
    delta: float,
    samples: int,
    rng: Generator,
    confidence: float = 0.95,
    scores: Sequence[Score] = (),
) -> Audit:
    """Look for an event that tells two inputs apart better than (epsilon, delta) allows.

    If the claim is true, it is refuted with a probability of at most 1 - confidence.

    Args:
        randomizer: called as ``randomizer(input, count, rng)``, it returns that many independent
            reports, ``(count, n)``; `randomizer_of` makes one of a protocol.
        input_a, input_b: two inputs, of whatever kind the randomizer takes.
        epsilon, delta: the claim.
        samples: how many reports of each input to draw, half of them to choose an event.
        rng: source of randomness.
        confidence: of the lower bound that comes back.
        scores: functions from reports ``(count, n)`` to numbers ``(count,)``, to try beside the
            linear combination of coordinates that separates the inputs best.

    >>> from ldpcash import Prot
    >>> code = PolarCode.construct(64, 8)
    >>> rng = np.random.default_rng(1)
    >>> found = audit(randomizer_of(Prot(code, 1.0)), *farthest_items(code), 1.0, 0.0, 20_000, rng)
    >>> round(found.epsilon, 2), found.refuted
    (0.94, False)
    """
    samples = whole_number("samples", samples, 100)
    inputs, doubt = (input_a, input_b), (1 - fraction("confidence", confidence)) / 2
    learn, choose, judge = samples // 4, samples // 2 - samples // 4, samples - samples // 2

    def draw(use: Score, count: int) -> list[Reals]:
        """A score of fresh reports of each input; or several, as rows."""
        sizes = [part.stop - part.start for part in batches(count, _AT_ONCE)]
        return [
            np.concatenate([use(randomizer(one, size, rng)) for size in sizes], axis=-1)
            for one in inputs
        ]

    tried = [_separating(randomizer, inputs, learn, rng), *scores]
    chosen = draw(lambda reports: np.stack([score(reports) for score in tried]), choose)
    events = [_best_event(a, b, delta, doubt) for a, b in zip(*chosen, strict=True)]
    which = int(np.argmax([event.bound for event in events]))
    event = events[which]
    count_a, count_b = (event.count(scores) for scores in draw(tried[which], judge))
    hits = (count_a, count_b) if event.favours == "a" else (count_b, count_a)
    bound = float(_loss(*hits, judge, delta, doubt))
    return Audit(max(0.0, bound), epsilon, event.favours, hits, judge)


class _Event(NamedTuple):
    """Scores from a threshold up, as evidence for a; or from there down, for b."""

    bound: float
    threshold: float
    favours: str

    def count(self, scores: Reals) -> int:
        shows = scores >= self.threshold if self.favours == "a" else scores <= self.threshold
        return int(np.count_nonzero(shows))


def _best_event(scores_a: Reals, scores_b: Reals, delta: float, doubt: float) -> _Event:
    """The event with the largest lower bound, of all that a score has.

    Thresholds are scores that were seen, more densely towards both ends. The largest of many bounds
    is one that had luck, above all where counts are small; less doubt makes that rare.
    """
    a, b = np.sort(scores_a), np.sort(scores_b)
    count, seen = len(a), np.unique(np.append(a, b))
    if len(seen) > _THRESHOLDS:
        share = np.geomspace(1 / len(seen), 0.5, _THRESHOLDS // 2)
        seen = seen[np.unique((np.append(share, 1 - share) * (len(seen) - 1)).astype(int))]
    above_a, above_b = (count - np.searchsorted(x, seen, side="left") for x in (a, b))
    below_a, below_b = (np.searchsorted(x, seen, side="right") for x in (a, b))
    events = []
    for favours, hits, misses in (("a", above_a, above_b), ("b", below_b, below_a)):
        bounds = _loss(hits, misses, count, delta, doubt / 100)
        best = int(np.argmax(bounds))
        events.append(_Event(float(bounds[best]), float(seen[best]), favours))
    return max(events)


def _loss(hits: Any, misses: Any, count: int, delta: float, doubt: float) -> Any:
    """A lower bound on the privacy loss of an event that ``hits`` reports of the input that it
    favours show, and ``misses`` of the other.

    Each of both probabilities lies beyond its Clopper-Pearson bound with probability ``doubt``.
    """
    at_least = np.where(hits == 0, 0, betaincinv(np.maximum(hits, 1), count - hits + 1, doubt))
    at_most = betaincinv(misses + 1, np.maximum(count - misses, 1), 1 - doubt)
    at_most = np.where(misses == count, 1, at_most)
    return np.log(np.maximum(at_least - delta, 1e-300) / at_most)


def _separating(
    randomizer: Randomizer, inputs: tuple[Any, Any], count: int, rng: Generator
) -> Score:
    """Fisher's linear discriminant: the combination of coordinates with the best ratio of signal
    to noise. Noise that is shared between coordinates or reports it subtracts."""
    means, covariance = [], np.zeros(())
    for one in inputs:
        total = np.zeros(())
        for part in batches(count, _AT_ONCE):
            reports = randomizer(one, part.stop - part.start, rng)
            total = total + reports.sum(axis=0)
            if part.start == 0:  # some thousand reports tell enough about the noise
                around = reports - reports.mean(axis=0)
                covariance = covariance + np.einsum("ri,rj->ij", around, around) / len(around)
        means.append(total / count)
    ridge = 1e-9 * np.trace(covariance) / len(covariance) + 1e-150  # no noise is no obstacle
    weights = np.linalg.solve(covariance + ridge * np.eye(len(covariance)), means[0] - means[1])
    return lambda reports: np.einsum("ri,i->r", reports, weights)  # BLAS differs between CPUs


# What to audit


def randomizer_of(protocol: Protocol) -> Randomizer:
    """The randomizer of a protocol: its inputs are items, ``(k,)`` bits, or None for no item.

    >>> from ldpcash import Prot
    >>> send = randomizer_of(Prot(PolarCode.construct(64, 8), 1.0))
    >>> send(None, 3, np.random.default_rng(1)).shape
    (3, 64)
    """

    def randomizer(item: Any, count: int, rng: Generator) -> Reals:
        bits = np.zeros(protocol.code.k, dtype=np.uint8) if item is None else item
        return protocol.reports(np.tile(bits, (count, 1)), np.full(count, item is not None), rng)

    return randomizer


def farthest_items(code: PolarCode) -> tuple[Bits, Bits]:
    """Two items whose codewords differ the most: the worst pair of inputs.

    >>> [item.tolist() for item in farthest_items(PolarCode.construct(64, 8))]
    [[0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 0]]
    """
    heaviest = int(code.codebook().sum(axis=1).argmax())
    return bits_of(heaviest, code.k), np.zeros(code.k, dtype=np.uint8)


def bias(protocol: Protocol, item: Bits, samples: int, rng: Generator) -> float:
    """By how many standard errors the mean of <x, report> is off 1, where x is the item's signal.

    A mistake can leave a report as private as it should be and still make it wrong; this finds it.

    >>> from ldpcash import Prot
    >>> code = PolarCode.construct(64, 8)
    >>> abs(bias(Prot(code, 1.0), np.ones(8, np.uint8), 10_000, np.random.default_rng(1))) < 5
    True
    """
    along = randomizer_of(protocol)(item, samples, rng) @ protocol.code.signals(item)
    return float((along.mean() - 1) / (along.std() / np.sqrt(samples)))


def ruled_out(reports: ArrayLike) -> NDArray[np.bool_]:
    """Bits that a report cannot have been made from, if noise was added to it in floating point.

    A sum of floats is rounded, and which sums there are depends on what is added to: for +1/sqrt(n)
    and -1/sqrt(n) they are different floats. So if no float64 at all, whatever noise it comes from,
    leads from a bit's signal to the report, then the bit is ruled out with certainty.

    This says nothing of reports on a grid whose step is no binary fraction, as that of `Cash` for n
    that is no power of 4: they are rounded after all noise is in, which gives nothing away, and
    often no sum of floats is the same.

    Args:
        reports: ``(..., n)``.

    Returns ``(2, ..., n)``: whether a 0, and whether a 1, is ruled out at each position.

    >>> bool(ruled_out(np.array([0.3 + 0.5, 3.3, 5.0, 0.1])).any())
    True
    """
    sent = np.asarray(reports, dtype=np.float64)
    level = 1 / np.sqrt(sent.shape[-1])
    # If some float leads there, so does the one nearest to the difference: where floats near it are
    # as dense as near the report or denser, the sum rounds to the report, and where they are less
    # dense, sums are exact and only an exact difference does.
    return np.array([signal + (sent - signal) != sent for signal in (-level, level)])


def rounding_score(code: PolarCode, item_a: Bits, item_b: Bits) -> Score:
    """How many bits of b a report rules out, less those of a.

    It is 0 for all reports on a grid of binary fractions, as that of `Cash` is for n a power of 4.

    >>> from ldpcash import Cash
    >>> code = PolarCode.construct(64, 8)
    >>> items = farthest_items(code)
    >>> reports = randomizer_of(Cash(code, 1.0))(items[0], 100, np.random.default_rng(1))
    >>> np.unique(rounding_score(code, *items)(reports))
    array([0.])
    """
    a, b = (code.encode(item).astype(int) for item in (item_a, item_b))
    place = np.arange(code.n)

    def score(reports: Reals) -> Reals:
        impossible = ruled_out(reports[:, : code.n]).astype(np.float64)
        return (impossible[b, :, place] - impossible[a, :, place]).sum(axis=0)

    return score


def joint_odds(prot: ProtChannels) -> float:
    """The largest ratio of probabilities of what a server sees of all channels.

    What it sees is a ticket's seed, which is there before the client decides anything, and what is
    sent. So it goes through all that a seed can stand for and all that can be sent, for one item in
    each of the channels and for a client that holds nothing.

    >>> from ldpcash.histogram.symbols import symbol_code
    >>> round(float(np.log(joint_odds(ProtChannels(symbol_code(4, 2), 1.0, 2, 2)))), 6)
    1.0
    """
    response, g = prot.response, prot.symbols
    [values] = prot.views.values_of(prot.code.encode(np.ones((1, prot.code.k), dtype=np.uint8)))
    law = np.full((prot.count + 1, g + 1), response.any / g)  # the last one holds nothing
    law[:-1, g] = 1 - response.true - response.any
    law[-1] = response.any_empty / g
    law[-1, g] = 1 - response.any_empty
    law = law[:, : prot.largest + 1]  # without a blank where there is none
    worst = 0.0
    for value, masks in itertools.product(np.unique(values), prot.masks.T):
        seen = law.copy()
        seen[np.arange(prot.count), value ^ masks] += response.true
        worst = max(worst, float((seen.max(axis=0) / seen.min(axis=0)).max()))
    return worst
