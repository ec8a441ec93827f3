"""The public parameters of a collection, which clients and server have to share.

`Plan.choose` sets by rule what is not given. Clients make reports with a plan (`client`), the
server needs the same one to take them in (`collector`), and a fingerprint tells whether it has. As
JSON it travels between them.
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

from ldpcash.base.checks import one_of, real_number, whole_number
from ldpcash.codec.hadamard import symbol_width
from ldpcash.codec.polar import PolarCode
from ldpcash.codec.scl import SCLDecoder
from ldpcash.codec.symbol_decoder import SymbolDecoder
from ldpcash.histogram import wire
from ldpcash.histogram.cash_channels import CashChannels
from ldpcash.histogram.channels import Channels
from ldpcash.histogram.client import make_reports
from ldpcash.histogram.hashing import ChannelHash
from ldpcash.histogram.mixing import MOST_BITS, Mixing
from ldpcash.histogram.packing import Packing
from ldpcash.histogram.prot_channels import ProtChannels
from ldpcash.histogram.symbols import SymbolResponse, symbol_code, widest

_MOST_CELLS = 2**22  # counts that a server keeps, where the rule for K has a choice
_WIDEST = 10  # of symbols by rule: 12 take the server six times as long, for a tenth less noise


_LEAST_FDR, _MOST_FDR = 1e-6, 0.5  # below, 2**-1000 of it is 0; above, hardly anything is asked


class Cost(NamedTuple):
    """What a collection costs, in bytes and steps.

    >>> Plan.choose(10**6, 40, 2.0).cost(10**6).report
    24
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
        hash_seed: of the hash and of the mixing of items.
        list_size: of the list decoder.
        decision: "soft" or "hard", what is decoded.
        fdr: false-discovery rate that the threshold aims at.
        packing: how strings become items; None if items are bits.

    >>> plan = Plan.choose(clients=1_000_000, k=40, epsilon=2.0)
    >>> plan.channels.width, plan.channels.code.n, plan.channels.count
    (3, 2048, 256)
    >>> round(plan.smallest(1_000_000), 4)  # a frequency that clears the threshold half of the time
    0.0063
    """

    channels: Channels
    hash_seed: int = 0
    list_size: int = 32
    decision: str = "soft"
    fdr: float = 0.05
    packing: Packing | None = None
    channel_of: ChannelHash = field(init=False, repr=False, compare=False)
    mixing: Mixing = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checked = {
            "hash_seed": whole_number("hash_seed", self.hash_seed, 0),
            "list_size": whole_number("list_size", self.list_size, 1),
            "fdr": real_number("fdr", self.fdr, _LEAST_FDR, _MOST_FDR),
        }
        for name, value in checked.items():  # plain numbers, whatever kind was given
            object.__setattr__(self, name, value)
        one_of("decision", self.decision, ("soft", "hard"))
        if self.packing is not None and self.packing.k != self.k:
            raise ValueError(f"packing = {self.packing!r}: items have k = {self.k} bits")
        hash_stream, mixing_stream = SeedSequence([self.hash_seed]).spawn(2)
        channel_of = ChannelHash(self.k, self.channels.count, hash_stream)
        [key] = mixing_stream.generate_state(1, np.uint64).tolist()
        object.__setattr__(self, "channel_of", channel_of)
        object.__setattr__(self, "mixing", Mixing(self.k, key))

    @classmethod
    def choose(
        cls,
        clients: int,
        k: int,
        epsilon: float,
        *,
        protocol: str = "Prot",
        delta: float | None = None,
        code: PolarCode | None = None,
        width: int | None = None,
        count: int | None = None,
        empty: float = 0.0,
        **options: Any,
    ) -> Plan:
        """Set by rule what is not given.

        - Protocol: "Prot", which needs less noise than "Cash" and far fewer bytes.
        - Symbols: what brings the least noise (`SymbolResponse.best`) of those with at most ten
          bits, with a blank where many clients hold nothing.
        - Code: the `symbol_code` for it.
        - Lists of 32; of 8, which find nearly as much, where symbols have more than six bits and
          paths are long.
        - K: the power of two from 2 / f up, f the smallest frequency that can be found, so that two
          such items seldom meet; from 64 to 256, and less if the server would have to keep more
          than 2**22 counts. Items that do meet are told apart by taking out the heavier.

        Args:
            clients: N, about.
            k: bits of an item.
            epsilon, delta: the privacy of each client's report; delta is for "Cash", 1e-4 unless
                given.
            protocol: "Prot" or "Cash".
            code: any `PolarCode` that fits.
            width: b, bits of a symbol of "Prot"; 1 with a code that is given.
            count: K, how many channels.
            empty: the fraction of clients that is expected to hold nothing.
            options: all else that a plan has.
        """
        clients = whole_number("clients", clients, 1)
        k = whole_number("k", k, 1, MOST_BITS)
        empty = real_number("empty", empty, 0, 1)
        one_of("protocol", protocol, ("Prot", "Cash"))
        if protocol == "Cash" and width not in (None, 1):
            raise ValueError(f"width = {width!r}: symbols of several bits are Prot's, not Cash's")
        if protocol == "Prot" and delta is not None:
            raise ValueError(f"delta = {delta!r}: Prot is private without one")
        if width is None and (protocol == "Cash" or code is not None):
            width = 1
        if width is None:
            response = SymbolResponse.best(epsilon, empty, range(1, min(_WIDEST, widest(k)) + 1))
        else:
            response = SymbolResponse.best(epsilon, empty, range(width, width + 1))
        if code is None:
            code = symbol_code(k, response.width)
        elif code.k != k:
            raise ValueError(f"code = {code!r}: has {code.k} bits, and items k = {k}")

        def build(number: int) -> Channels:
            if protocol == "Cash":
                return CashChannels(code, epsilon, number, 1e-4 if delta is None else delta)
            return ProtChannels(code, epsilon, number, response.width, response.blank, empty)

        if count is None:
            fdr = real_number("fdr", options.get("fdr", 0.05), _LEAST_FDR, _MOST_FDR)
            bar = threshold(k, fdr)
            smallest = bar * build(2).noise / math.sqrt(clients)
            most = min(8, max(4, int(math.log2(_MOST_CELLS / code.n))))
            count = 2 ** min(most, max(6, math.ceil(math.log2(2 / smallest))))
        options.setdefault("list_size", 8 if response.width > 6 else 32)
        return cls(build(count), **options)

    @property
    def k(self) -> int:
        return self.channels.code.k

    def decoder(self) -> SCLDecoder | SymbolDecoder:
        """The list decoder for the plan's code.

        >>> decoder = Plan.choose(10_000, 8, 2.0).decoder()
        >>> type(decoder).__name__, decoder.list_size
        ('SymbolDecoder', 32)
        """
        symbols = symbol_width(self.channels.code) > 1
        return (SymbolDecoder if symbols else SCLDecoder)(self.channels.code, self.list_size)

    def smallest(self, clients: int) -> float:
        """The frequency whose estimate clears the threshold half of the time."""
        return threshold(self.k, self.fdr) * self.channels.noise / math.sqrt(clients)

    @cached_property
    def public(self) -> dict[str, Any]:
        """All that clients need, as plain values."""
        channels, code = self.channels, self.channels.code
        dynamic = {str(index): list(map(int, sources)) for index, sources in code.dynamic.items()}
        return {
            "protocol": "Cash" if isinstance(channels, CashChannels) else "Prot",
            "epsilon": channels.epsilon,
            "delta": channels.delta,
            "count": channels.count,
            "width": channels.width,
            "blank": channels.blank,
            "empty": channels.empty_share,
            "code": {"n": code.n, "info": code.info.tolist(), "dynamic": dynamic},
            "hash_seed": self.hash_seed,
            "packing": None if self.packing is None else self.packing.to_dict(),
        }

    @cached_property
    def fingerprint(self) -> int:
        """32 bits of a hash of everything that clients and server must agree on."""
        text = json.dumps(self.public, sort_keys=True)
        return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)

    def to_json(self) -> str:
        """The plan as text, for `from_json`.

        >>> plan = Plan.choose(10_000, 8, 2.0)
        >>> Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
        True
        """
        server = {"list_size": self.list_size, "decision": self.decision, "fdr": self.fdr}
        return json.dumps({"public": self.public, "server": server})

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan that `to_json` made this text of.

        >>> text = Plan.choose(10_000, 8, 2.0, fdr=0.01).to_json()
        >>> Plan.from_json(text).fdr
        0.01
        """
        try:
            stored = json.loads(text)
            public, server = stored["public"], stored["server"]
            one_of("protocol", public["protocol"], ("Cash", "Prot"))
            one_of("blank", public["blank"], (False, True))
            code, packing = public["code"], public["packing"]
            dynamic = {int(index): sources for index, sources in code["dynamic"].items()}
            polar = PolarCode(code["n"], code["info"], dynamic)
            count, epsilon = public["count"], public["epsilon"]
            channels: Channels
            if public["protocol"] == "Cash":
                channels = CashChannels(polar, epsilon, count, public["delta"])
            else:
                width, blank = public["width"], public["blank"]
                channels = ProtChannels(polar, epsilon, count, width, blank, public["empty"])
            packed = None if packing is None else Packing.from_dict(packing)
            plan = cls(channels, public["hash_seed"], packing=packed, **server)
            if json.loads(plan.to_json()) != stored:  # what it says is not what was understood
                raise KeyError("it has other entries, or values of another kind")
            return plan
        except (KeyError, TypeError, AttributeError, RecursionError, json.JSONDecodeError) as error:
            raise ValueError(f"text is not a plan, as `Plan.to_json` writes it: {error}") from error

    @property
    def form(self) -> wire.Format:
        """What reports look like as bytes.

        >>> plan = Plan.choose(10_000, 8, 2.0)
        >>> plan.form.fingerprint == plan.fingerprint, plan.form.payload
        (True, dtype('uint8'))
        """
        return wire.Format(self.fingerprint, self.channels.payload)

    def reports(
        self,
        bits: ArrayLike,
        holds: ArrayLike,
        tickets: ArrayLike,
        rng: Generator | None = None,
    ) -> NDArray[Any]:
        """What B clients send beside their tickets: ``(B, k)`` items, ``(B,)`` whether held.

        ``rng`` is for simulations. Real reports leave it out, and take the randomness of the
        operating system: whoever could repeat their numbers would see through them.

        >>> from ldpcash import Collector
        >>> plan = Plan.choose(10_000, 8, 2.0)
        >>> tickets = Collector(plan).issue(2)  # the server's part
        >>> sent = plan.reports([[1] * 8, [0] * 8], [True, False], tickets)
        >>> sent.dtype, sent.shape
        (dtype('uint8'), (2,))
        """
        parts = self.channels, self.mixing, self.channel_of
        return make_reports(*parts, bits, holds, tickets, rng)

    def to_bytes(self, tickets: ArrayLike, sent: ArrayLike) -> bytes:
        """Reports as they travel, one after the other; `Collector.receive_stream` takes them in.

        >>> from ldpcash import Collector
        >>> plan = Plan.choose(10_000, 8, 2.0)
        >>> tickets = Collector(plan).issue(1)
        >>> len(plan.to_bytes(tickets, plan.reports([[1] * 8], [True], tickets)))
        24
        """
        return wire.to_bytes(self.form, tickets, sent)

    @property
    def report_size(self) -> int:
        """Bytes that a client sends.

        >>> Plan.choose(10_000, 8, 2.0).report_size
        24
        """
        return self.form.size

    def cost(self, clients: int) -> Cost:
        """What N clients and the server spend: counted, not measured.

        >>> Plan.choose(10**6, 40, 2.0).cost(10**6)
        Cost(report=24, state=5194304, collect=1000000, search=184549376)
        """
        clients = whole_number("clients", clients, 0)
        channels, n = self.channels, self.channels.code.n
        state = 8 * math.prod(channels.shape) + clients  # a byte for each ticket
        each = math.prod(channels.payload.shape)
        search = channels.count * self.list_size * n * (n.bit_length() - 1)
        return Cost(self.report_size, state, clients * each, search)


def threshold(k: int, fdr: float) -> float:
    """Standard errors that one item among 2**k must stand out by.

    >>> round(threshold(40, 0.05), 3)
    7.453
    """
    return float(-ndtri(fdr * 2.0**-k))
