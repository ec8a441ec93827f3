"""The client's side: an item, or nothing, to a private report about all channels::

seed, random and public -> the client's group, and so the hash -> the item's channel
                        -> what is sent beside the seed                `Channels.reports`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import as_holds, as_items
from ldpcash.base.randomness import random_words
from ldpcash.histogram.channels import Channels
from ldpcash.histogram.hashing import ChannelHash, Seeds, groups


def make_reports(
    channels: Channels,
    hashes: Sequence[ChannelHash],
    bits: ArrayLike,
    holds: ArrayLike,
    rng: Generator | None = None,
) -> tuple[Seeds, NDArray[Any]]:
    """What B clients send: ``(B, k)`` items and ``(B,)`` whether held, to seeds, payloads.

    Args:
        channels, hashes: of the plan.
        bits: the item of each client.
        holds: False for a client that holds nothing.
        rng: for simulations. Real reports leave it out, and take the randomness of the operating
            system: whoever could repeat their numbers would see through them.

    >>> from ldpcash import Plan
    >>> plan = Plan.choose(10_000, 8, 2.0)
    >>> seeds, sent = make_reports(plan.channels, plan.hashes, [[1] * 8, [0] * 8], [True, False])
    >>> seeds.shape, sent.dtype, sent.shape
    ((2,), dtype('uint8'), (2,))
    """
    items = as_items(bits, channels.code.k)
    held = as_holds(holds, len(items))
    seeds = random_words((len(items),), 64, rng)
    group = groups(seeds, len(hashes))
    channel = np.full(len(items), -1)
    for number, channel_of in enumerate(hashes):
        mine = held & (group == number)
        channel[mine] = channel_of(items[mine])
    return seeds, channels.reports(items, channel, seeds, rng)
