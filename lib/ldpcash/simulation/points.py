"""A setting of a protocol, in plain parameters: what can be simulated, stored and sent to workers.

A `Point` says all of what it stands for. It builds its protocol and decoder by their names in
`PROTOCOLS` and `DECODERS`, which others may add to, and it has a key, a hash of its parameters, on
which its random streams hang.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from ldpcash.base.checks import one_of, real_number, whole_number
from ldpcash.codec.ml import MLDecoder
from ldpcash.codec.polar import PolarCode
from ldpcash.codec.scl import SCLDecoder
from ldpcash.codec.symbol_decoder import SymbolDecoder
from ldpcash.protocols.blank import Blank
from ldpcash.protocols.cash import Cash
from ldpcash.protocols.direct import KaryResponse, LocalHashing, SubsetSelection
from ldpcash.protocols.laws import holders
from ldpcash.protocols.prot import Prot
from ldpcash.protocols.protocol import Decoder, Protocol

PROTOCOLS: dict[str, type[Protocol]] = {
    "Cash": Cash,
    "Prot": Prot,
    "Blank": Blank,
    "KaryResponse": KaryResponse,
    "SubsetSelection": SubsetSelection,
    "LocalHashing": LocalHashing,
}
DECODERS: dict[str, type[Decoder]] = {
    "SCL": SCLDecoder,
    "ML": MLDecoder,
    "symbols": SymbolDecoder,
}

_SHARED = ("code", "epsilon", "decoder")  # what every protocol takes; all else is its options


class Point:
    """One setting, in plain parameters. A wrong one is a `ValueError` here, not in a worker.

    What is not given is filled in from the protocol's own defaults, so that a point says all of
    what it stands for; what the protocol does not have must not be given.

    Args:
        protocol: one of `PROTOCOLS`, such as "Cash" or "Prot".
        epsilon: the privacy of each client's report.
        frequency, clients: how many clients there are, and which fraction holds the item. The true
            frequency is that of the nearest whole number of holders; see `ldpcash.holders`.
        n, k: length of the code and number of its information bits.
        method, design_sigma: how the code is constructed, see `PolarCode.construct`; "pw" and 1.0
            (for methods that have one) if not given.
        info, dynamic: the k indices of the information bits and the dynamic frozen bits, instead
            of a method; see `PolarCode`.
        decoder: "SCL", "ML" or "symbols"; the protocol's own if neither it nor an option of "SCL"
            is given.
        list_size, exact: options of "SCL"; "symbols" has the first of them.
        options: what else the protocol's constructor takes, plain values by name: ``delta`` of
            `Cash`; ``empty``, ``decision`` and ``frequency_from`` of `Prot`; ``width`` and
            ``expected`` of `Blank`; ``size`` of `SubsetSelection`; ``values`` of `LocalHashing`.

    >>> point = Point(protocol="Prot", epsilon=2, frequency=0.6, clients=1000, decision="soft")
    >>> point.decoder, point.options
    ('ML', {'empty': 'uniform', 'decision': 'soft', 'frequency_from': 'mean'})
    >>> point.empty  # an option reads like the other parameters
    'uniform'
    """

    protocol: str
    epsilon: float
    frequency: float
    clients: int
    n: int
    k: int
    method: str | None
    design_sigma: float | None
    info: tuple[int, ...] | None
    dynamic: tuple[tuple[int, tuple[int, ...]], ...] | None
    decoder: str | None
    list_size: int | None
    exact: bool | None

    def __init__(
        self,
        *,
        protocol: str,
        epsilon: float,
        frequency: float,
        clients: int,
        n: int = 64,
        k: int = 8,
        method: str | None = None,
        design_sigma: float | None = None,
        info: Iterable[int] | None = None,
        dynamic: Any = None,
        decoder: str | None = None,
        list_size: int | None = None,
        exact: bool | None = None,
        **options: Any,
    ) -> None:
        kind = PROTOCOLS[one_of("protocol", protocol, PROTOCOLS)]
        # Plain numbers, so that equal points are alike. A point never changes: see __setattr__.
        self.__dict__.update(
            protocol=protocol,
            epsilon=real_number("epsilon", epsilon),
            frequency=real_number("frequency", frequency),
            clients=whole_number("clients", clients, 1, 2**53),
            n=whole_number("n", n, 1),
            k=whole_number("k", k, 1),
        )
        holders(self.frequency, self.clients)  # which says what is wrong with them
        if info is None:
            self.__dict__.update(_construction(method, design_sigma, dynamic))
        else:
            self.__dict__.update(_given_code(self.n, self.k, method, design_sigma, info, dynamic))
        if not (exact is None or isinstance(exact, (bool, np.bool_))):
            raise ValueError(f"exact = {exact!r}: needs True or False")
        size = None if list_size is None else whole_number("list_size", list_size, 1)
        self.__dict__.update(decoder=decoder, list_size=size, exact=exact)
        self.__dict__["_options"] = _options(kind, options)
        try:
            built = self.build().decoder
        except TypeError as error:
            raise ValueError(f"protocol = {protocol!r}: cannot be built: {error}") from error
        known = {kind: name for name, kind in DECODERS.items()}
        self.__dict__.update(
            decoder=known[one_of(f"decoder of {protocol!r}", type(built), known)],
            list_size=getattr(built, "list_size", None),
            exact=getattr(built, "exact", None),
        )

    def build(self) -> Protocol:
        """The protocol that this point is about.

        >>> Point(protocol="Prot", epsilon=2, frequency=0.6, clients=1000).build().keep > 0.88
        True
        """
        if self.info is None:
            code = PolarCode.construct(self.n, self.k, str(self.method), self.design_sigma)
        else:
            code = PolarCode(self.n, self.info, dict(self.dynamic or ()))
        decoder = None
        given = {"list_size": self.list_size, "exact": self.exact}
        given = {name: value for name, value in given.items() if value is not None}
        if self.decoder is not None or given:
            name = "SCL" if self.decoder is None else self.decoder
            kind: Any = DECODERS[one_of("decoder", name, DECODERS)]
            _check_names(kind, given)
            decoder = kind(code, **given)
        protocol: Any = PROTOCOLS[self.protocol]
        return protocol(code, epsilon=self.epsilon, decoder=decoder, **self.options)

    @property
    def options(self) -> dict[str, Any]:
        """The protocol's options, all of them, by name."""
        return dict(self.__dict__["_options"])

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters by name, those of the point before the protocol's options.

        >>> point = Point(protocol="Cash", epsilon=2, frequency=0.6, clients=1000)
        >>> point.parameters["list_size"], point.parameters["delta"]
        (8, 0.0001)
        """
        return {**{name: self.__dict__[name] for name in _NAMES}, **self.options}

    @cached_property
    def key(self) -> str:
        """A name for this point: a hash of all its parameters."""
        given = {name: value for name, value in self.parameters.items() if value is not None}
        return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def true_frequency(self) -> float:
        return holders(self.frequency, self.clients) / self.clients

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name}: a point does not change, make another")

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_options"][name]
        except KeyError:
            raise AttributeError(f"a point of this protocol has no {name!r}") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        given = {name: value for name, value in self.parameters.items() if value is not None}
        return f"Point({', '.join(f'{name}={value!r}' for name, value in given.items())})"


_NAMES = [*Point.__annotations__]


def parameters_of(code: PolarCode) -> dict[str, Any]:
    """A code as parameters of a `Point`.

    >>> parameters_of(PolarCode(4, [1, 3], {2: [1]}))
    {'n': 4, 'k': 2, 'info': (1, 3), 'dynamic': ((2, (1,)),)}
    """
    return {
        "n": code.n,
        "k": code.k,
        "info": tuple(code.info.tolist()),
        "dynamic": tuple(code.dynamic.items()) or None,
    }


def option_names() -> list[str]:
    """The options of all protocols, in the order in which they were entered.

    >>> {"delta", "empty", "decision", "frequency_from"} <= {*option_names()}
    True
    """
    names = (name for kind in PROTOCOLS.values() for name in _signature(kind))
    return [name for name in dict.fromkeys(names) if name not in _SHARED]


def _construction(method: str | None, design_sigma: Any, dynamic: Any) -> dict[str, Any]:
    """Parameters of a code that is constructed."""
    if dynamic is not None:
        raise ValueError(f"dynamic = {dynamic!r}: give info with it")
    method = "pw" if method is None else method
    if design_sigma is not None:
        design_sigma = real_number("design_sigma", design_sigma)
    elif method in ("ga", "bhattacharyya"):
        design_sigma = 1.0
    return {"method": method, "design_sigma": design_sigma, "info": None, "dynamic": None}


def _given_code(
    n: int, k: int, method: Any, design_sigma: Any, info: Any, dynamic: Any
) -> dict[str, Any]:
    """Parameters of a code that is given by its indices."""
    for name, value in (("method", method), ("design_sigma", design_sigma)):
        if value is not None:
            raise ValueError(f"{name} = {value!r}: give it or info, not both")
    try:
        indices = tuple(sorted(whole_number("info", i, 0) for i in info))
        parities = dict(dynamic or ())
    except TypeError:
        if not isinstance(info, Iterable):
            raise ValueError(f"info = {info!r}: needs k whole numbers") from None
        raise ValueError(f"dynamic = {dynamic!r}: see PolarCode") from None
    if len(indices) != k:
        raise ValueError(f"info = {indices!r}: needs k = {k} indices")
    found = parameters_of(PolarCode(n, indices, parities))
    return {**found, "method": None, "design_sigma": None}


def _options(kind: type[Protocol], given: dict[str, Any]) -> dict[str, Any]:
    """A protocol's options, all of them: as given, or by its own defaults."""
    _check_names(kind, given)
    options = {}
    for name, parameter in _signature(kind).items():
        if name in _SHARED:
            continue
        if name in _NAMES:
            raise ValueError(f"{kind.__name__} has an option {name!r}: a point has that already")
        if name not in given and parameter.default is parameter.empty:
            raise ValueError(f"{name} is missing: {kind.__name__} needs it")
        value = given.get(name, parameter.default)
        if isinstance(parameter.default, float):
            value = real_number(name, value)
        options[name] = _plain(name, value)
    others = {name: _plain(name, value) for name, value in given.items() if name not in options}
    return {**options, **others}


def _check_names(kind: type, given: dict[str, Any]) -> None:
    """Whether ``kind`` takes all that is given."""
    known = inspect.signature(kind).parameters.values()
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known)
    for name, value in given.items():
        if name not in _signature(kind) and not takes_any:
            raise ValueError(f"{name} = {value!r}: {kind.__name__} has no such option")


def _signature(kind: type) -> dict[str, inspect.Parameter]:
    """What a class declares that it is constructed with, by name."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(kind).parameters
    return {name: one for name, one in parameters.items() if one.kind in named}


def _plain(name: str, value: Any) -> Any:
    """A value that can be compared, stored and sent: a number, a string, or tuples of these."""
    if isinstance(value, (list, tuple)):
        return tuple(_plain(name, part) for part in value)
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or isinstance(plain, (bool, int, float, str)):
        return plain
    raise ValueError(f"{name} = {value!r}: needs a number, a string, or a list of these")
