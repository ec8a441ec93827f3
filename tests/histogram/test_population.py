"""Whole collections: client by client, drawn, and in one call."""

import unicodedata
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from strategies import BITS, COUNTS, NAMES, names_of

from ldpcash.base.workers import Here
from ldpcash.histogram import population as room
from ldpcash.histogram.collector import Collector
from ldpcash.histogram.packing import Packing
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.population import collect, draw_collector, succinct_histogram

OPTIONS = [
    {},
    {"empty": 0.5},
    {"width": 1},
    {"width": 1, "decision": "hard"},
    {"width": 6},
    {"protocol": "Cash", "count": 16},
]


def population(clients=20_000):
    who = np.full(clients, -1)
    filled = np.repeat(np.arange(4), COUNTS)
    who[: len(filled)] = filled[:clients]
    return np.random.default_rng(1).permutation(who)


class TestCollecting:
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_clients_and_law_find_the_same(self, options):
        plan = Plan.choose(20_000, 20, 3.0, hash_seed=5, **options)
        cash = options.get("protocol") == "Cash"
        who = population()[: 300 if cash else 20_000]
        collector = collect(plan, BITS, who, seed=3)
        assert collector.clients == len(who)
        assert not collector.rejected
        drawn = draw_collector(plan, BITS, COUNTS, np.random.default_rng(2), 20_000 - COUNTS.sum())
        assert drawn.clients == 20_000
        for some in [drawn] if cash else [collector, drawn]:
            lines = some.histogram(NAMES)
            assert names_of(lines)[:3] == ["ANNA", "BOB", "CAY"]
            np.testing.assert_allclose(
                [line.frequency for line in lines[:3]], COUNTS[:3] / 20_000, atol=0.05
            )

    def test_the_number_of_workers_does_not_matter(self, monkeypatch):
        monkeypatch.setattr(room, "CHUNK", 1500)
        plan = Plan.choose(20_000, 20, 3.0, hash_seed=5)
        here = collect(plan, BITS, population(), seed=3)
        with ThreadPoolExecutor(3) as executor:
            there = collect(plan, BITS, population(), seed=3, executor=executor)
        np.testing.assert_array_equal(here.sums, there.sums)
        assert here.histogram(NAMES) == there.histogram(NAMES)
        assert here.clients == there.clients == 20_000
        assert here.tickets.use(range(20_000)).tolist() == [False] * 20_000
        assert not np.array_equal(here.sums, collect(plan, BITS, population(), seed=4).sums)

    def test_every_chunk_has_its_own_randomness_and_tickets(self, monkeypatch):
        plan, sent = Plan.choose(20_000, 20, 3.0), []
        who = population()[:1000]
        add = Collector.add
        monkeypatch.setattr(Collector, "add", lambda *args: (sent.append(args[2]), add(*args)))
        first, again, other = (room._collect_chunk(plan, BITS, who, 3, i) for i in (0, 0, 1))
        np.testing.assert_array_equal(sent[0], sent[1])
        nobody = who < 0  # what they send is their own randomness alone
        assert np.mean(sent[0][nobody] == sent[2][nobody]) < 0.5
        np.testing.assert_array_equal(first.sums, again.sums)
        assert (first + other).clients == 2000
        with pytest.raises(ValueError, match="would count twice"):
            first + again

    def test_a_chunk_is_told_only_of_the_items_that_its_clients_hold(self, monkeypatch):
        monkeypatch.setattr(room, "CHUNK", 3)
        told = []

        class Noting(Here):
            def submit(self, task, /, *args):
                told.append((args[1].tolist(), args[2].tolist()))
                return super().submit(task, *args)

        plan = Plan.choose(20_000, 20, 3.0)
        collect(plan, BITS, np.array([3, -1, 3, 2, 0, 2, -1]), seed=1, executor=Noting())
        mixed = plan.mixing.mix(BITS).tolist()
        assert told == [
            ([mixed[3]], [0, -1, 0]),
            ([mixed[0], mixed[2]], [1, 0, 1]),
            ([], [-1]),
        ]

    def test_memory_is_bounded(self, monkeypatch):
        """No batch is larger than it says, whatever the number of clients."""
        sizes = []
        monkeypatch.setattr(room, "_BATCH_VALUES", 2**9)
        add = Collector.add
        monkeypatch.setattr(
            Collector, "add", lambda self, t, v: (sizes.append(len(v)), add(self, t, v))
        )
        plan = Plan.choose(20_000, 20, 3.0)
        collector = collect(plan, BITS, population(), seed=3)
        assert collector.clients == sum(sizes) == 20_000
        assert max(sizes) == 2**9 // 2


class TestOneCall:
    ITEMS = ("ANNA",) * 5000 + (None,) * 3000 + ("BOB",) * 2000

    def test_strings_in_every_way(self):
        expected = succinct_histogram(list(self.ITEMS), 3.0, seed=2, packing=NAMES)
        assert names_of(expected)[:2] == ["ANNA", "BOB"]
        for items in (
            self.ITEMS,
            (item for item in self.ITEMS),
            np.array(self.ITEMS, dtype=object),
            {"ANNA": 5000, None: 3000, "BOB": 2000},
            {"ANNA": 5000.0, None: np.int64(3000), "BOB": 2000, "CAY": 0},
        ):
            assert succinct_histogram(items, 3.0, seed=2, packing=NAMES) == expected

    def test_bits_in_every_way(self):
        rows = BITS[np.repeat([0, 1], [5000, 2000])]
        expected = succinct_histogram(rows, 3.0, seed=1)
        np.testing.assert_array_equal([line.item for line in expected[:2]], BITS[:2])
        with ThreadPoolExecutor(2) as executor:
            others = [
                succinct_histogram(rows.tolist(), 3.0, seed=1),
                succinct_histogram((row for row in rows), 3.0, seed=1),
                succinct_histogram(rows == 1, 3.0, seed=1),
                succinct_histogram(rows, 3.0, seed=1, executor=executor),
            ]
        for lines in others:
            assert [line[1:] for line in lines] == [line[1:] for line in expected]

    def test_a_word_is_one_item_however_it_was_typed(self):
        words = Packing(40)
        typed = {unicodedata.normalize(form, "été"): 3000 for form in ("NFC", "NFD")}
        assert len(typed) == 2
        lines = succinct_histogram({**typed, None: 2000}, 4.0, seed=1, packing=words)
        assert names_of(lines).count("été") == 1
        assert lines[0].frequency == pytest.approx(6000 / 8000, abs=0.1)

    def test_seeds_of_any_kind(self):
        rows = BITS[np.repeat([0, 1], [3000, 1000])]
        plain = succinct_histogram(rows, 3.0, seed=1)
        for seed in (1.0, np.int64(1)):
            again = succinct_histogram(rows, 3.0, seed=seed)
            assert [line.frequency for line in again] == [line.frequency for line in plain]
        with pytest.raises(ValueError, match=r"^seed = -1: needs a whole number from 0"):
            succinct_histogram(rows, 3.0, seed=-1)

    def test_the_plan_s_options(self):
        lines = succinct_histogram(
            {"ANNA": 300, None: 100}, 3.0, seed=1, packing=NAMES, protocol="Cash", count=2
        )
        assert names_of(lines) in ([], ["ANNA"])  # of so few clients
        with pytest.raises(ValueError, match=r"^fdr = 2"):
            succinct_histogram({"ANNA": 300}, 3.0, seed=1, packing=NAMES, fdr=2)

    @pytest.mark.parametrize(
        ("items", "packing", "message"),
        [
            ([], NAMES, "items holds no client"),
            ({}, NAMES, "items holds no client"),
            ({"ANNA": 0}, NAMES, "items holds no client"),
            (iter([]), None, "items holds no client"),
            (np.empty((0, 20)), None, "items holds no client"),
            ([None, None], NAMES, "items holds no item: every client is empty"),
            ({None: 5}, NAMES, "items holds no item: every client is empty"),
            (
                ["ANNA", None, "ANNA", "ANNABEL"],
                NAMES,
                r"items, each different one counted once: strings\[1\] has 7 letters",
            ),
            (["ANNA"], None, r"items has shape \(1,\): needs rows of bits, or a packing"),
            ({"ANNA": 7}, None, "items holds names and numbers: names need a packing"),
            ({"ANNA": -1}, NAMES, "a number of clients = -1: needs a whole number from 0"),
            ({"ANNA": 0.5}, NAMES, "a number of clients = 0.5: needs a whole number from 0"),
            (["ANNA", 7], NAMES, r"items\[1\] is neither a string nor None"),
            (["ANNA", ["ANNA"]], NAMES, r"items\[1\] is neither a string nor None"),
            ([[0, 1, 2]], None, r"items\[0, 2\] is neither 0 nor 1: only 0 and 1 are bits"),
            ([[[0, 1]]], None, r"items has shape \(1, 1, 2\): needs rows of bits"),
            (7, None, r"items has shape \(\): needs rows of bits, or a packing"),
            (7, NAMES, "items is a single int: needs one string a client"),
            ("ANNA", NAMES, "items is a single string: needs one a client"),
            ("ANNA", None, "items is a single string: needs one a client"),
        ],
    )
    def test_wrong_items(self, items, packing, message):
        with pytest.raises(ValueError, match=f"^{message}"):
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
    plan = Plan.choose(100, 20, 1.0)
    with pytest.raises(ValueError, match=f"^{message}"):
        draw_collector(plan, bits, counts, np.random.default_rng(1))
    with pytest.raises(ValueError, match=r"^empty = -1: needs a whole number from 0"):
        draw_collector(plan, BITS, COUNTS, np.random.default_rng(1), empty=-1)
