"""The public parameters of a collection, which clients and server have to share.

`Plan.choose` sets by rule what is not given. Clients make reports with a plan (`client`), the
server needs the same one to take them in (`collector`), and a fingerprint tells whether it has.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ldpcash.base.checks import fraction, one_of, whole_number
from ldpcash.codec.polar import PolarCode
from ldpcash.histogram import wire
from ldpcash.histogram.cash_channels import CashChannels
from ldpcash.histogram.channels import Channels
from ldpcash.histogram.client import make_reports
from ldpcash.histogram.hashing import ChannelHash, Seeds
from ldpcash.histogram.prot_channels import ProtChannels
from ldpcash.histogram.symbols import best_symbol_width, symbol_code

_MOST_BITS = 1000  # of an item: a share of 2**-k of a false-discovery rate is still a float


class Cost(NamedTuple):
    """What a collection costs, in bytes and steps.

    >>> Plan.choose(10**6, 40, 2.0).cost(10**6).report
    20
    """

    report: int  #: bytes that a client sends
    state: int  #: bytes that the server keeps
    collect: int  #: numbers that the server touches to take in all reports
    search: int  #: numbers that the first round of decoding touches


@dataclass(frozen=True)
class Plan:
    """The public parameters of a collection. Clients and server need the same.

    Args:
        channels: how items are sent: `ProtChannels` or `CashChannels`.
        hash_seed: of the T hashes.
        groups: T, how many groups clients are split into.
        list_size: of the list decoder.
        decision: "soft" or "hard", what is decoded.
        fdr: false-discovery rate that the threshold aims at.

    >>> plan = Plan.choose(clients=1_000_000, k=40, epsilon=2.0)
    >>> plan.channels.width, plan.channels.code.n, plan.channels.count, plan.groups
    (3, 512, 256, 1)
    >>> round(plan.smallest(1_000_000), 4)  # a frequency that clears the threshold every other time
    0.0063
    """

    channels: Channels
    hash_seed: int = 0
    groups: int = 1
    list_size: int = 128
    decision: str = "soft"
    fdr: float = 0.05
    hashes: tuple[ChannelHash, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checked = {
            "hash_seed": whole_number("hash_seed", self.hash_seed, 0),
            "groups": whole_number("groups", self.groups, 1, 256),
            "list_size": whole_number("list_size", self.list_size, 1),
            "fdr": fraction("fdr", self.fdr),
        }
        for name, value in checked.items():  # plain numbers, whatever kind was given
            object.__setattr__(self, name, value)
        one_of("decision", self.decision, ("soft", "hard"))
        streams = SeedSequence([self.hash_seed]).spawn(self.groups)
        hashes = (ChannelHash(self.k, self.channels.count, stream) for stream in streams)
        object.__setattr__(self, "hashes", tuple(hashes))

    @classmethod
    def choose(
        cls,
        clients: int,
        k: int,
        epsilon: float,
        *,
        protocol: str = "Prot",
        delta: float = 1e-4,
        code: PolarCode | None = None,
        width: int | None = None,
        count: int | None = None,
        **options: Any,
    ) -> Plan:
        """Set by rule what is not given.

        - Protocol: "Prot", which needs less noise than "Cash" and far fewer bytes.
        - Symbols: of the b bits that bring the least noise (`best_symbol_width`).
        - Code: a `symbol_code` for the weakest signal that can clear the threshold.
        - K: the power of two from 2 / f up, f the smallest frequency that can be found, so that two
          such items seldom meet; from 64 to 256, because the server's work grows with K, and items
          that do meet are told apart by taking out the heavier.
        - T: 1. Every item is searched for in one group's noise, so splitting clients loses more
          than a second hash gains.

        Args:
            clients: N, about.
            k: bits of an item.
            epsilon, delta: the privacy of each client's report; delta is for "Cash".
            protocol: "Prot" or "Cash".
            code: any `PolarCode` that fits.
            width: b, bits of a symbol of "Prot"; 1 with a code that is given.
            count: K, how many channels.
            options: all else that a plan has.
        """
        clients = whole_number("clients", clients, 1)
        k = whole_number("k", k, 1, _MOST_BITS)
        one_of("protocol", protocol, ("Prot", "Cash"))
        if protocol == "Cash" and width not in (None, 1):
            raise ValueError(f"width = {width!r}: symbols of several bits are Prot's, not Cash's")
        if width is None:
            plain = protocol == "Cash" or code is not None
            width = 1 if plain else best_symbol_width(epsilon)
        bar = threshold(k, fraction("fdr", options.get("fdr", 0.05)))
        if code is None:
            code = symbol_code(k, width, bar + 0.5)
        elif code.k != k:
            raise ValueError(f"code = {code!r}: has {code.k} bits, and items k = {k}")

        def build(number: int) -> Channels:
            if protocol == "Cash":
                return CashChannels(code, epsilon, number, delta)
            return ProtChannels(code, epsilon, number, width)

        if count is None:
            smallest = bar * build(2).noise / math.sqrt(clients)
            count = 2 ** min(8, max(6, math.ceil(math.log2(2 / smallest))))
        return cls(build(count), **options)

    @property
    def k(self) -> int:
        return self.channels.code.k

    def smallest(self, clients: int) -> float:
        """The frequency whose estimate clears the threshold every other time."""
        return threshold(self.k, self.fdr) * self.channels.noise / math.sqrt(clients)

    @cached_property
    def fingerprint(self) -> int:
        """32 bits of a hash of everything that clients and server must agree on."""
        channels = self.channels
        public = [type(channels).__name__, channels.epsilon, channels.count]
        public += [repr(channels.code), self.hash_seed, self.groups]
        public += [channels.width, channels.delta]
        return int(hashlib.sha256(json.dumps(public).encode()).hexdigest()[:8], 16)

    def reports(
        self, bits: ArrayLike, holds: ArrayLike, rng: Generator | None = None
    ) -> tuple[Seeds, NDArray[Any]]:
        """What B clients send: ``(B, k)`` items and ``(B,)`` whether held, to seeds, payloads.

        ``rng`` is for simulations. Real reports leave it out, and take the randomness of the
        operating system: whoever could repeat their numbers would see through them.

        >>> seeds, sent = Plan.choose(10_000, 8, 2.0).reports([[1] * 8, [0] * 8], [True, False])
        >>> seeds.shape, sent.dtype, sent.shape
        ((2,), dtype('uint8'), (2,))
        """
        return make_reports(self.channels, self.hashes, bits, holds, rng)

    def to_bytes(self, seeds: Seeds, sent: NDArray[Any]) -> list[bytes]:
        """Reports as they travel; `Collector.receive` takes them in.

        >>> plan = Plan.choose(10_000, 8, 2.0)
        >>> [report] = plan.to_bytes(*plan.reports([[1] * 8], [True]))
        >>> len(report) == plan.report_size
        True
        """
        return wire.to_bytes(self.fingerprint, seeds, sent)

    @property
    def report_size(self) -> int:
        """Bytes that a client sends.

        >>> Plan.choose(10_000, 8, 2.0).report_size
        20
        """
        return wire.frame_size(self.channels.payload)

    def cost(self, clients: int) -> Cost:
        """What N clients and the server spend: counted, not measured.

        >>> Plan.choose(10**6, 40, 2.0).cost(10**6)
        Cost(report=20, state=1048576, collect=256000000, search=150994944)
        """
        clients = whole_number("clients", clients, 0)
        channels, n = self.channels, self.channels.code.n
        sums = channels.count * channels.cells
        each = math.prod(channels.payload.shape) if channels.payload.shape else channels.count
        search = self.groups * channels.count * self.list_size * n * (n.bit_length() - 1)
        return Cost(self.report_size, 8 * self.groups * sums, clients * each, search)


def threshold(k: int, fdr: float) -> float:
    """Standard errors that one item among 2**k must stand out by.

    >>> round(threshold(40, 0.05), 3)
    7.453
    """
    return float(-ndtri(fdr * 2.0**-k))
