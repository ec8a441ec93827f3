"""What a client sends."""

import numpy as np
import pytest
from strategies import BITS

from ldpcash.histogram.client import make_reports
from ldpcash.histogram.hashing import groups
from ldpcash.histogram.plan import Plan


def test_an_item_is_sent_in_the_channel_that_its_group_s_hash_says(monkeypatch):
    plan = Plan.choose(100, 20, 1.0, groups=3)
    monkeypatch.setattr(plan.channels, "reports", lambda bits, channel, seeds, rng: channel)
    items, holds = np.tile(BITS, (50, 1)), np.arange(200) % 5 > 0
    for rng in (None, np.random.default_rng(1)):
        seeds, channel = make_reports(plan.channels, plan.hashes, items, holds, rng)
        assert len(set(seeds.tolist())) == 200
        own = [plan.hashes[g]([item])[0] for g, item in zip(groups(seeds, 3), items, strict=True)]
        assert channel.tolist() == np.where(holds, own, -1).tolist()


@pytest.mark.parametrize(
    ("bits", "holds", "message"),
    [
        (BITS, np.ones(3, bool), r"holds has shape \(3,\)"),
        (BITS, np.ones(4), "holds has shape .* and type float64"),
        (BITS[0], [True], r"bits has shape \(20,\)"),
    ],
)
def test_wrong_holds(bits, holds, message):
    with pytest.raises(ValueError, match=message):
        Plan.choose(100, 20, 1.0).reports(bits, holds, np.random.default_rng(1))


@pytest.mark.parametrize("options", [{}, {"protocol": "Cash", "count": 2}], ids=str)
@pytest.mark.parametrize(
    "bits",
    [
        [[471147] * 20],
        [[471147.5] * 20],
        np.full((1, 20), 77, dtype=np.uint8),
        [["xyzzy"] * 20],
        [["xyzzy", *[0] * 19]],
        [[b"xyzzy", *[None] * 19]],
        ["xyzzy"],
        [["xyzzy"], ["x", "y"]],
        "xyzzy" * 4,
    ],
    ids=range(9),
)
def test_no_error_gives_an_item_away(bits, options):
    """A client that packs in its own way, and wrongly."""
    plan = Plan.choose(100, 20, 1.0, **options)
    with pytest.raises(ValueError, match=r"^(bits|setting an array element with a seq)") as caught:
        plan.reports(bits, [True])
    error = caught.value
    told = f"{error!r} {error.__cause__!r} {error.__context__!r}"
    assert not [part for part in ("4711", "77", "xyz") if part in told]
