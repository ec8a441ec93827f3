"""Whole collections: client by client, drawn, and in one call."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from strategies import BITS, COUNTS, NAMES, OPTIONS, names_of

from ldpcash.histogram import population as room
from ldpcash.histogram.collector import Collector
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.population import collect, draw_collector, succinct_histogram


def population(clients=20_000):
    who = np.full(clients, -1)
    filled = np.repeat(np.arange(4), COUNTS)
    who[: len(filled)] = filled[:clients]
    return np.random.default_rng(1).permutation(who)


class TestCollecting:
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_clients_and_law_find_the_same(self, options):
        plan = Plan.choose(20_000, 20, 3.0, hash_seed=5, **options)
        clients = 2000 if options.get("protocol") == "Cash" else 20_000
        collector = collect(plan, BITS, population()[:clients], seed=3)
        assert collector.clients.sum() == clients
        if clients == 20_000:
            assert names_of(collector.histogram(NAMES))[:3] == ["ANNA", "BOB", "CAY"]

    def test_the_number_of_workers_does_not_matter(self, monkeypatch):
        monkeypatch.setattr(room, "CHUNK", 1500)
        plan = Plan.choose(20_000, 20, 3.0, hash_seed=5, groups=2)
        here = collect(plan, BITS, population(), seed=3)
        with ThreadPoolExecutor(3) as executor:
            there = collect(plan, BITS, population(), seed=3, executor=executor)
        np.testing.assert_array_equal(here.sums, there.sums)
        assert here.histogram(NAMES) == there.histogram(NAMES)
        assert not np.array_equal(here.sums, collect(plan, BITS, population(), seed=4).sums)

    def test_every_chunk_has_its_own_randomness(self):
        plan = Plan.choose(20_000, 20, 3.0)
        who = population()[:1000]
        first, again, other = (room._collect_chunk(plan, BITS, who, 3, i) for i in (0, 0, 1))
        np.testing.assert_array_equal(first.sums, again.sums)
        assert not np.array_equal(first.sums, other.sums)

    def test_memory_is_bounded(self, monkeypatch):
        """No batch is larger than it says, whatever the number of clients."""
        sizes = []
        monkeypatch.setattr(room, "_BATCH_VALUES", 2**14)
        add = Collector.add
        monkeypatch.setattr(
            Collector, "add", lambda self, s, v: (sizes.append(len(s)), add(self, s, v))
        )
        plan = Plan.choose(20_000, 20, 3.0)
        collector = collect(plan, BITS, population(), seed=3)
        assert collector.clients.sum() == sum(sizes) == 20_000
        assert max(sizes) <= 2**14 // plan.channels.code.n


class TestOneCall:
    def test_strings(self):
        items = ["ANNA"] * 5000 + [None] * 3000 + ["BOB"] * 2000
        lines = succinct_histogram(items, 3.0, seed=2, packing=NAMES)
        assert names_of(lines) == ["ANNA", "BOB"]

    def test_seeds_of_any_kind(self):
        rows = BITS[np.repeat([0, 1], [3000, 1000])]
        plain = succinct_histogram(rows, 3.0, seed=1)
        for seed in (1.0, np.int64(1)):
            again = succinct_histogram(rows, 3.0, seed=seed)
            assert [line.frequency for line in again] == [line.frequency for line in plain]
        with pytest.raises(ValueError, match=r"^seed = -1: needs a whole number from 0"):
            succinct_histogram(rows, 3.0, seed=-1)

    def test_bits_and_an_executor(self):
        rows = BITS[np.repeat([0, 1], [5000, 2000])]
        here = succinct_histogram(rows, 3.0, seed=1)
        with ThreadPoolExecutor(2) as executor:
            there = succinct_histogram(rows, 3.0, seed=1, executor=executor)
        assert [line.frequency for line in here] == [line.frequency for line in there]
        np.testing.assert_array_equal(here[0].item, BITS[0])

    @pytest.mark.parametrize(
        ("items", "packing", "message"),
        [
            ([], NAMES, "items holds no client"),
            (np.empty((0, 20)), None, "items holds no client"),
            ([None, None], NAMES, "items holds no item: every client is empty"),
            (
                ["ANNA", None, "ANNA", "ANNABEL"],
                NAMES,
                r"^items, each different one counted once: strings\[1\] has 7 letters",
            ),
            (["ANNA"], None, "needs rows of bits, or a packing"),
            ([[0, 1, 2]], None, "only 0 and 1 are bits"),
            ("ANNA", NAMES, "items is a single string: needs one a client"),
        ],
    )
    def test_wrong_items(self, items, packing, message):
        with pytest.raises(ValueError, match=message):
            succinct_histogram(items, 1.0, seed=1, packing=packing)


@pytest.mark.parametrize(
    ("bits", "counts", "message"),
    [
        (BITS, [1, 2], r"counts has shape \(2,\) and type int64"),
        (BITS, [1.0, 1, 1, 1], "counts has shape .* and type float64"),
        (BITS, [-1, 2, 3, 4], "counts holds -1: needs whole numbers from 0"),
        (BITS[0], [1], r"bits has shape \(20,\)"),
    ],
)
def test_wrong_counts(bits, counts, message):
    with pytest.raises(ValueError, match=message):
        draw_collector(Plan.choose(100, 20, 1.0), bits, counts, np.random.default_rng(1))
