"""`Blank`: a client tells one value of its codeword, or hands in a blank, as most should.

It solves the paper's problem with its idea, soft list decoding of coded reports, and a randomizer
made for it. Most clients hold nothing, so nearly all noise comes from them: what they send is as
unlike an item's answers as epsilon allows (`ldpcash.privacy.answers`)::

    codeword -> its value in a random view -> an answer, a denial or a blank    the client
    counts of answers and denials -> how often each coordinate was said to be 1 the server
             -> mean y, its coordinates weighted by what they tell -> decoder

`reports` is the client's side, `estimate` the server's, as `ldpcash.protocols.protocol` says, and
the law of `mean_reports` is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Counts, Reals, as_items
from ldpcash.base.checks import real_number, whole_number
from ldpcash.base.randomness import random_words
from ldpcash.codec.hadamard import symbol_width, walsh_hadamard
from ldpcash.codec.polar import PolarCode
from ldpcash.codec.scl import SCLDecoder
from ldpcash.codec.symbol_decoder import SymbolDecoder
from ldpcash.privacy.answers import MOST_WIDTH, WORDS, Answers
from ldpcash.protocols.laws import holders, spread_evenly
from ldpcash.protocols.protocol import Decoder, Estimate, Protocol
from ldpcash.protocols.views import Views


class Blank(Protocol):
    """Answers and blanks: pure epsilon privacy, and close to the least noise that any has.

    A report is a view, which is public and random, and one symbol: an answer with one of g values,
    a denial of one, or a blank. Which of them, and how likely, is chosen by epsilon alone.

    Args:
        code: any code; one made of symbols, such as `hadamard_code` for short items and
            `code_of_symbols` for long ones, lets a client tell more than one bit of it.
        epsilon: the privacy of each client's report, at most 40.
        decoder: a `SymbolDecoder` with a list of 16 for a code of symbols, else an `SCLDecoder`
            with a list of 8, unless given.
        width: r, bits of a value; what tells most unless given.
        expected: the frequency for which the values are chosen; 0 for a small one.

    >>> from ldpcash.codec.hadamard import hadamard_code
    >>> rng = np.random.default_rng(1)
    >>> blank = Blank(hadamard_code(8), epsilon=2.0)
    >>> y = blank.mean_reports([[1, 0, 1, 1, 0, 0, 1, 0]], frequency=0.2, clients=1000, rng=rng)
    >>> bits, frequency = blank.estimate(y)
    >>> bits[0], round(float(frequency[0]), 2)
    (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.23)
    """

    def __init__(
        self,
        code: PolarCode,
        epsilon: float,
        decoder: Decoder | None = None,
        width: int | None = None,
        expected: float = 0.0,
    ) -> None:
        most = min(symbol_width(code), MOST_WIDTH)
        if decoder is None:
            decoder = SymbolDecoder(code) if most > 1 else SCLDecoder(code, 8)
        super().__init__(code, decoder)
        if width is not None:
            width = whole_number("width", width, 1, most)
        widths = range(1, most + 1) if width is None else range(width, width + 1)
        self.answers = Answers.best(epsilon, widths, real_number("expected", expected, 0, 1))
        self.epsilon = self.answers.epsilon
        self.width = self.answers.width
        self.views = Views(code, self.width)
        self._own = [
            np.array(own, dtype=np.intp) for own in (self.answers.own, self.answers.denied)
        ]
        self._heard = np.stack(self.answers.sums())  # (2, g)
        # A client's true answers and denials, on average, count so much for each sum of its value.
        _, answers, _, denials = (coin / WORDS for coin in self.answers.coins)
        true = [
            rate / len(own) * (heard**2)[1:].mean() if len(own) else 0.0
            for rate, own, heard in zip((answers, denials), self._own, self._heard, strict=True)
        ]
        weight = true[0] + true[1] * np.exp(self.epsilon)
        self._scale = np.sqrt(code.n) / (self.answers.values - 1) / weight

    def reports(self, bits: ArrayLike, holds: ArrayLike, rng: Generator | None = None) -> Reals:
        """What a client's message is worth at each coordinate: ``(N, n)``.

        Every choice is a comparison of random words with whole numbers, so that all probabilities
        are exact.

        >>> from ldpcash.codec.hadamard import hadamard_code
        >>> blank = Blank(hadamard_code(4), epsilon=3.0, width=2)
        >>> sent = blank.reports([[1, 0, 1, 1]] * 3, [True] * 3, np.random.default_rng(1))
        >>> np.count_nonzero(sent, axis=1)
        array([3, 3, 3])
        """
        view, denies, value = self.messages(bits, holds, rng)
        worth = np.zeros((self.views.count, self.answers.values, len(view)))
        client = np.arange(len(view))
        parity = np.bitwise_count(value[:, None] & np.arange(self.answers.values)) & 1
        worth[view, :, client] = self._heard[denies] * (1 - 2.0 * parity)
        return -self._scale * self.views.sums_of(worth).T

    def messages(
        self, bits: ArrayLike, holds: ArrayLike, rng: Generator | None = None
    ) -> tuple[Counts, Counts, Counts]:
        """What travels: each client's view, whether it denies (1) or answers (0), and a value.

        If nothing is anyone's own in a denial, it is a blank, and its value says nothing.

        >>> from ldpcash.codec.hadamard import hadamard_code
        >>> blank = Blank(hadamard_code(4), epsilon=3.0)
        >>> view, denies, value = blank.messages([[1, 0, 1, 1]], [True], np.random.default_rng(1))
        >>> view.shape, denies.shape, value.shape
        ((1,), (1,), (1,))
        """
        items = as_items(bits, self.code.k)
        _, held = self._clients(items, holds)
        clients = len(items)
        view = random_words((clients,), 32, rng).astype(np.intp) % self.views.count
        symbol = self.views.values_of(self.code.encode(items))[np.arange(clients), view]
        any_value = random_words((clients,), 16, rng).astype(np.intp) % self.answers.values
        coin = random_words((clients,), 64, rng)
        which = random_words((clients,), 64, rng)
        answer, true, deny, _ = self.answers.coins
        ends = (answer, answer + true, answer + true + deny)  # a coin at the last may end a blank
        bounds = np.array([min(end, WORDS - 1) for end in ends], dtype=np.uint64)
        outcome = np.searchsorted(bounds, coin, side="right")
        outcome = np.where(held, outcome, np.where(coin < bounds[0], 0, 2))
        value = any_value
        for true_outcome, own in ((1, self._own[0]), (3, self._own[1])):
            if len(own):
                mine = symbol ^ own[(which % np.uint64(len(own))).astype(np.intp)]
                value = np.where(outcome == true_outcome, mine, value)
        return view, outcome >> 1, value

    def honest(self, reports: Reals) -> NDArray[np.bool_]:
        """Whether each report, ``(N, n)``, has at most the norm of the loudest message.

        What travels is a message, of which a server can see that it is one.

        >>> from ldpcash.codec.hadamard import hadamard_code
        >>> blank = Blank(hadamard_code(4), epsilon=3.0)
        >>> sent = blank.reports([[1, 0, 1, 1]] * 2, [True] * 2, np.random.default_rng(1))
        >>> blank.honest(sent * [[1], [2]])  # the second client counts itself twice
        array([ True, False])
        """
        loudest = self._scale * np.sqrt(np.square(self._heard[:, 1:]).sum(axis=1).max())
        with np.errstate(over="ignore", invalid="ignore"):  # cheats send what they like
            return np.asarray(np.linalg.norm(reports, axis=1) <= loudest * (1 + 1e-6))

    def mean_reports(
        self, bits: ArrayLike, frequency: float, clients: int, rng: Generator
    ) -> Reals:
        """Counts of answers and denials in each view, drawn without clients.

        All clients answer with any of the g values equally often; and deny, those that hold nothing
        more often. These fall evenly on all views and values. What an item answers or denies of its
        own besides falls evenly on all views, and for every coordinate it has the item's sign.
        """
        signs = self.code.signs(as_items(bits, self.code.k)).T
        trials = signs.shape[1]
        held, clients = holders(frequency, clients), int(clients)
        rates = np.array(self.answers.coins, dtype=np.float64) / WORDS
        own = rng.multinomial(held, rates / rates.sum(), size=trials)  # of those that hold it
        empty = rng.binomial(clients - held, rates[0], size=trials)  # answers of the others
        anything = (own[:, 0] + empty, own[:, 2] + clients - held - empty)
        true = (own[:, 1], own[:, 3])
        total: Any = 0.0
        for denies in (0, 1):
            offsets = self._own[denies]
            if len(offsets):
                noise = self._any_values(anything[denies], rng)
                told = self._own_values(true[denies], offsets, rng)
                heard = self._heard[denies]
                total = total + signs * self._sums(told, heard) - self._sums(noise, heard)
        return (self._scale / clients * total).T

    def _sums(self, counts: Counts, heard: Reals) -> NDArray[Any]:
        """Counts ``(views, g, T)`` of values to what they are worth at each coordinate: (n, T)."""
        spectra = walsh_hadamard(counts)
        return self.views.sums_of(spectra if (heard == 1).all() else heard[:, None] * spectra)

    def _any_values(self, messages: Counts, rng: Generator) -> Counts:
        """How often each view got each value, if all are alike: ``(T,)`` to ``(views, g, T)``."""
        shape = (self.views.count, self.answers.values, len(messages))
        cells = spread_evenly(messages, self.width + shape[0].bit_length() - 1, rng)
        return cells.reshape(shape).astype(_summable(messages))

    def _own_values(self, messages: Counts, offsets: Counts, rng: Generator) -> Counts:
        """The same, as an offset from the item's own value, if only some offsets occur."""
        left = spread_evenly(messages, self.views.count.bit_length() - 1, rng)
        left = left.astype(_summable(messages))
        counts = np.zeros((len(left), self.answers.values, left.shape[1]), left.dtype)
        for number, offset in enumerate(offsets[:-1].tolist()):
            part = rng.binomial(left, 1 / (len(offsets) - number)).astype(left.dtype)
            counts[:, offset] = part
            left = left - part
        counts[:, offsets[-1]] = left
        return counts

    def estimate(self, y: ArrayLike) -> Estimate:
        """Decode the mean, and correlate."""
        means = self._means(y)
        bits = self.decoder.decode(-means)
        return Estimate(bits, self._correlation(bits, means))


def _summable(messages: Counts) -> type[np.signedinteger[Any]]:
    """Whole numbers that have room for the sum of all messages of a trial."""
    return np.int32 if messages.max(initial=0) < 2**31 else np.int64
