"""What a client sends."""

import numpy as np
import pytest
from strategies import BITS

from ldpcash.histogram import client as room
from ldpcash.histogram.client import make_reports
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.tickets import TICKET, Tickets

PLANS = {"Prot": {}, "Cash": {"protocol": "Cash", "count": 2}}


def tickets_for(count):
    return Tickets(bytes(16)).issue(count)


@pytest.mark.parametrize("batch", [2**24, 1, 3000])
def test_items_are_mixed_and_sent_in_the_channel_of_the_mixed_item(monkeypatch, batch):
    plan, seen = Plan.choose(100, 20, 1.0), []
    monkeypatch.setattr(room, "_BATCH_VALUES", batch)

    def reports(items, channel, who, seeds, rng):
        held = who >= 0
        told = np.full(len(who), -1)
        told[held] = channel[who[held]]
        mixed = np.zeros((len(who), 20), dtype=np.uint8)
        mixed[held] = items[who[held]]
        seen.extend(zip(told.tolist(), mixed.tolist(), seeds.tolist(), strict=True))
        return np.zeros(len(who), np.uint8)

    monkeypatch.setattr(plan.channels, "reports", reports)
    items, holds, tickets = np.tile(BITS, (50, 1)), np.arange(200) % 5 > 0, tickets_for(200)
    before = items.copy()
    plan.reports(items, holds, tickets)
    for item, held, ticket, (channel, mixed, seed) in zip(items, holds, tickets, seen, strict=True):
        assert seed == ticket["seed"]
        own = plan.mixing.mix(item[None])
        assert mixed == (own[0].tolist() if held else [0] * 20)
        assert channel == (plan.channel_of(own)[0] if held else -1)
    np.testing.assert_array_equal(items, before)


@pytest.mark.parametrize("options", PLANS.values(), ids=PLANS)
def test_payloads_are_as_the_plan_says(options):
    plan = Plan.choose(100, 20, 1.0, **options)
    for count in (0, 1, 7):
        for rng in (None, np.random.default_rng(1)):
            holds = np.arange(count) % 2 == 0
            sent = plan.reports(np.tile(BITS[0], (count, 1)), holds, tickets_for(count), rng)
            assert sent.dtype == plan.channels.payload.base
            assert sent.shape == (count, *plan.channels.payload.shape)
            assert plan.channels.honest(sent).all()


def test_a_generator_decides_everything():
    plan, tickets = Plan.choose(100, 20, 1.0), tickets_for(4)
    one, same, other = (
        plan.reports(np.tile(BITS, (1, 1)), np.ones(4, bool), tickets, np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("bits", "holds", "tickets", "message"),
    [
        (BITS, np.ones(3, bool), tickets_for(4), r"holds has shape \(3,\)"),
        (BITS, np.ones(4), tickets_for(4), "holds has shape .* and type float64"),
        (BITS[0], [True], tickets_for(1), r"bits has shape \(20,\)"),
        (BITS[:, :19], np.ones(4, bool), tickets_for(4), r"bits has shape \(4, 19\)"),
        (BITS, np.ones(4, bool), tickets_for(3), "tickets holds 3: needs one for each of 4 cl"),
        (BITS, np.ones(4, bool), np.arange(4), r"tickets has shape \(4,\) and type int64"),
        (BITS, np.ones(4, bool), np.zeros((4, 1), TICKET), r"tickets has shape \(4, 1\) and"),
        (BITS, np.ones(4, bool), np.random.default_rng(1), "tickets has shape .* and type obj"),
    ],
)
def test_wrong_arguments(bits, holds, tickets, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Plan.choose(100, 20, 1.0).reports(bits, holds, tickets)
    plan = Plan.choose(100, 20, 1.0)
    with pytest.raises(ValueError, match=f"^{message}"):
        make_reports(plan.channels, plan.mixing, plan.channel_of, bits, holds, tickets)


@pytest.mark.parametrize("options", PLANS.values(), ids=PLANS)
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
        plan.reports(bits, [True], tickets_for(1))
    error = caught.value
    told = f"{error!r} {error.__cause__!r} {error.__context__!r}"
    assert not [part for part in ("4711", "77", "xyz") if part in told]
