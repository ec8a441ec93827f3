"""The public parameters of a collection, which clients and server have to share.

`Plan.choose` sets by rule what is not given. A plan then makes the clients' reports; the server's
side, in `ldpcash.histogram`, needs the same plan, and a fingerprint tells whether it has.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ldpcash import wire
from ldpcash.channels import CashChannels, Channels
from ldpcash.checks import fraction, whole_number
from ldpcash.hashing import ChannelHash, Seeds, groups
from ldpcash.noise import random_words
from ldpcash.polar import PolarCode, as_bits
from ldpcash.symbols import ProtChannels, symbol_bits, symbol_code

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
    >>> plan.channels.bits, plan.channels.code.n, plan.channels.count, plan.groups
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
        if self.decision not in ("soft", "hard"):
            raise ValueError(f"decision = {self.decision!r}: choose one of soft, hard")
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
        bits: int | None = None,
        channels: int | None = None,
        **options: Any,
    ) -> Plan:
        """Set by rule what is not given.

        - Protocol: "Prot", which needs less noise than "Cash" and far fewer bytes.
        - Symbols: of the b bits that bring the least noise (`symbol_bits`).
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
            bits: b, of a symbol of "Prot"; 1 with a code that is given.
            channels: K.
            options: all else that a plan has.
        """
        clients = whole_number("clients", clients, 1)
        k = whole_number("k", k, 1, _MOST_BITS)
        if protocol not in ("Prot", "Cash"):
            raise ValueError(f"protocol = {protocol!r}: choose one of Prot, Cash")
        if protocol == "Cash" and bits not in (None, 1):
            raise ValueError(f"bits = {bits!r}: symbols of several bits are Prot's, not Cash's")
        if bits is None:
            bits = 1 if protocol == "Cash" or code is not None else symbol_bits(epsilon)
        bar = threshold(k, fraction("fdr", options.get("fdr", 0.05)))
        if code is None:
            code = symbol_code(k, bits, bar + 0.5)
        elif code.k != k:
            raise ValueError(f"code = {code!r}: has {code.k} bits, and items k = {k}")

        def build(number: int) -> Channels:
            if protocol == "Cash":
                return CashChannels(code, epsilon, number, delta)
            return ProtChannels(code, epsilon, number, bits)

        if channels is None:
            smallest = bar * build(2).noise / math.sqrt(clients)
            channels = 2 ** min(8, max(6, math.ceil(math.log2(2 / smallest))))
        return cls(build(channels), **options)

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
        public += [getattr(channels, name, None) for name in ("bits", "delta")]
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
        items, held = as_bits("bits", bits, self.k), np.asarray(holds)
        if items.ndim != 2:
            raise ValueError(f"bits has shape {items.shape}: needs a row of k bits for each client")
        if held.shape != items.shape[:1] or held.dtype != np.bool_:
            raise ValueError(
                f"holds has shape {held.shape} and type {held.dtype}:"
                f" needs True or False for each of {len(items)} clients"
            )
        seeds = random_words((len(items),), 64, rng)
        group = groups(seeds, self.groups)
        channel = np.full(len(items), -1)
        for number, channel_of in enumerate(self.hashes):
            mine = held & (group == number)
            channel[mine] = channel_of(items[mine])
        return seeds, self.channels.reports(items, channel, seeds, rng)

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
        return wire.report_size(self.channels.payload)

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
