"""The client's side: an item, or nothing, and a ticket to a private report about all channels::

item -> mixed -> its channel and its codeword
     -> with the ticket's seed, what is sent beside the ticket         `Channels.reports`
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import as_holds, as_items, batches
from ldpcash.histogram.channels import Channels
from ldpcash.histogram.hashing import ChannelHash
from ldpcash.histogram.mixing import Mixing
from ldpcash.histogram.tickets import as_tickets

_BATCH_VALUES = 2**24  # coordinates of codewords, or of reports, that are computed at once


def make_reports(
    channels: Channels,
    mixing: Mixing,
    channel_of: ChannelHash,
    bits: ArrayLike,
    holds: ArrayLike,
    tickets: ArrayLike,
    rng: Generator | None = None,
) -> NDArray[Any]:
    """What B clients send beside their tickets: ``(B, k)`` items, ``(B,)`` whether held.

    Args:
        channels, mixing, channel_of: of the plan.
        bits: the item of each client.
        holds: False for a client that holds nothing.
        tickets: ``(B,)``, one for each client.
        rng: for simulations. Real reports leave it out, and take the randomness of the operating
            system: whoever could repeat their numbers would see through them.

    >>> from ldpcash import Plan
    >>> from ldpcash.histogram.tickets import Tickets
    >>> plan, tickets = Plan.choose(10_000, 8, 2.0), Tickets().issue(2)
    >>> parts = plan.channels, plan.mixing, plan.channel_of
    >>> sent = make_reports(*parts, [[1] * 8, [0] * 8], [True, False], tickets)
    >>> sent.dtype, sent.shape
    (dtype('uint8'), (2,))
    """
    items = as_items(bits, channels.code.k)
    held = as_holds(holds, len(items))
    given = as_tickets(tickets)
    if len(given) != len(items):
        raise ValueError(f"tickets holds {len(given)}: needs one for each of {len(items)} clients")
    sent = np.empty((len(items), *channels.payload.shape), dtype=channels.payload.base)
    each = channels.code.n + sent[:1].size
    for part in batches(len(items), _BATCH_VALUES // each):
        mixed = mixing.mix(items[part])
        who = np.where(held[part], np.arange(len(mixed)), -1)
        seeds = given["seed"][part]
        sent[part] = channels.reports(mixed, channel_of(mixed), who, seeds, rng)
    return sent
