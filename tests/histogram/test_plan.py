"""Public parameters: the rule that sets them, what it finds, and how they travel.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import json
import pickle
from itertools import product

import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM

from ldpcash.codec.hadamard import code_of_symbols, hadamard_code
from ldpcash.codec.polar import PolarCode
from ldpcash.codec.scl import SCLDecoder
from ldpcash.codec.symbol_decoder import SymbolDecoder
from ldpcash.histogram.cash_channels import CashChannels
from ldpcash.histogram.hashing import ChannelHash
from ldpcash.histogram.mixing import Mixing
from ldpcash.histogram.packing import LATIN, Packing
from ldpcash.histogram.plan import Plan, threshold
from ldpcash.histogram.population import draw_collector
from ldpcash.histogram.prot_channels import ProtChannels
from ldpcash.histogram.symbols import SymbolResponse, symbol_code, widest

CODE = PolarCode.construct(64, 20)


class TestRule:
    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
    @pytest.mark.parametrize("empty", [0.0, 0.9])
    def test_symbols_are_those_with_the_least_noise(self, epsilon, empty):
        plan = Plan.choose(10**6, 40, epsilon, empty=empty)
        kinds = [
            SymbolResponse(epsilon, width, blank)
            for width in range(1, min(10, widest(40)) + 1)
            for blank in (False, True)
        ]
        assert plan.channels.noise == min(one.noise(empty) for one in kinds)
        assert plan.channels.code == symbol_code(40, plan.channels.width)
        assert plan.channels.empty_share == empty

    def test_channels_are_twice_as_many_as_the_lightest_items_that_can_be_found(self):
        for clients, epsilon in product([10**3, 10**5, 10**6, 10**8], [1.0, 2.0, 4.0, 8.0]):
            plan = Plan.choose(clients, 40, epsilon)
            count, smallest = plan.channels.count, plan.smallest(clients)
            assert count in (64, 128, 256)
            assert count == 256 or count >= 2 / smallest
            assert count == 64 or count / 2 < 2 / smallest
            assert np.prod(plan.channels.shape) <= 2**22

    def test_known_values(self):
        plan = Plan.choose(10**6, 40, 2.0)
        channels = plan.channels
        assert (channels.width, channels.blank, channels.code.n, channels.count) == (
            3,
            False,
            2048,
            256,
        )
        assert (plan.list_size, plan.decision, plan.fdr, plan.report_size) == (32, "soft", 0.05, 24)
        assert Plan.choose(10**5, 40, 1.0).channels.count == 64
        wide = Plan.choose(10**6, 40, 8.0)
        assert (wide.channels.width, wide.list_size, wide.report_size) == (10, 8, 25)
        cash = Plan.choose(10**6, 40, 2.0, protocol="Cash")
        assert isinstance(cash.channels, CashChannels)
        assert cash.channels.delta == 1e-4
        assert cash.report_size == 23 + 4 * cash.channels.code.n * cash.channels.count

    def test_what_is_given_is_taken(self):
        plan = Plan.choose(1000, 20, 1.0, code=CODE, count=8, list_size=4, fdr=0.01, hash_seed=9)
        assert plan.channels.code is CODE
        assert plan.channels.width == 1
        assert (plan.channels.count, plan.list_size, plan.fdr, plan.hash_seed) == (8, 4, 0.01, 9)
        assert Plan.choose(1000, 20, 1.0, width=2).channels.width == 2
        assert Plan.choose(1000, 20, 1.0, protocol="Cash", delta=1e-6).channels.delta == 1e-6
        words = Packing(20, LATIN)
        assert Plan.choose(1000, 20, 1.0, packing=words).packing is words

    def test_the_decoder_is_that_of_the_code(self):
        for code, kind in ((CODE, SCLDecoder), (code_of_symbols(20, 512), SymbolDecoder)):
            decoder = Plan.choose(1000, 20, 1.0, code=code, list_size=4).decoder()
            assert isinstance(decoder, kind)
            assert (decoder.code, decoder.list_size) == (code, 4)

    def test_it_finds_short_and_long_items(self, subtests):
        """60 of 100 clients hold it, hundreds of standard errors."""
        for k, epsilon in product([1, 2, 4, 6, 100, 128], [2.5, 4.0, 6.0]):
            with subtests.test(k=k, epsilon=epsilon):
                plan = Plan.choose(100_000, k, epsilon, count=4)
                item = np.random.default_rng(k).integers(0, 2, (1, k), dtype=np.uint8)
                rng = np.random.default_rng(1)
                line = draw_collector(plan, item, [60_000], rng, 40_000).histogram()[0]
                np.testing.assert_array_equal(line.item, item[0])
                assert line.frequency == pytest.approx(0.6, abs=0.02)

    def test_the_smallest_clears_the_threshold_every_other_time(self):
        """Estimates of an item of that frequency are above it as often as a fair coin is."""
        plan = Plan.choose(20_000, 40, 2.0, count=4)
        channels, clients, rng = plan.channels, 20_000, np.random.default_rng(1)
        held = np.array([round(plan.smallest(clients) * clients)])
        item, own = np.zeros((1, 40), dtype=np.uint8), np.array([1])
        bar, above = threshold(40, plan.fdr) * channels.noise / np.sqrt(clients), 0
        for _ in range(200):
            sums = channels.draw(item, own, held, clients, rng)
            above += channels.estimates(channels.signals(sums, clients), item, own)[0] > bar
        law = scipy.stats.binom(200, 0.5)
        assert law.ppf(FALSE_ALARM / 2) <= above <= law.isf(FALSE_ALARM / 2)


def test_threshold_is_the_normal_one():
    assert threshold(10, 0.05) == pytest.approx(scipy.stats.norm.isf(0.05 / 1024))
    assert np.isfinite(threshold(1000, 1e-4))  # of the longest items


def test_wrong_arguments(subtests):
    for wrong in (
        {"protocol": "RAPPOR"},
        {"clients": 0},
        {"k": 0},
        {"k": 1001},
        {"decision": "firm"},
        {"fdr": 1.0},
        {"fdr": 0},
        {"fdr": -1},
        {"fdr": None},
        {"list_size": 0},
        {"width": 3, "protocol": "Cash"},
        {"width": 0},
        {"width": 13},
        {"hash_seed": -1},
        {"count": 12},
        {"empty": 1.5},
        {"empty": None},
        {"epsilon": 0.0},
        {"delta": 1e-4},
        {"delta": 2, "protocol": "Cash"},
        {"code": PolarCode.construct(64, 8)},
        {"packing": Packing(21)},
    ):
        with (
            subtests.test(wrong=wrong),
            pytest.raises(ValueError, match=f"^{next(iter(wrong))} = "),
        ):
            Plan.choose(**{"clients": 100, "k": 20, "epsilon": 1.0, **wrong})


def test_numbers_of_any_kind_become_plain():
    plain = {"hash_seed": 3, "list_size": 8, "fdr": 0.5}
    for kind in (float, np.float64, lambda x: np.int64(x) if x > 1 else np.float32(x)):
        plan = Plan.choose(1000, 20, 1.0, **{name: kind(x) for name, x in plain.items()})
        assert {name: getattr(plan, name) for name in plain} == plain
        assert [type(getattr(plan, name)) for name in plain] == [int, int, float]
        assert plan.fingerprint == Plan.choose(1000, 20, 1.0, **plain).fingerprint


PUBLIC = [  # no two of them agree on how items are sent
    Plan(ProtChannels(CODE, 1.0, 8)),
    Plan(ProtChannels(CODE, 1.0, 8), hash_seed=1),
    Plan(ProtChannels(CODE, 1.0, 8), packing=Packing(20)),
    Plan(ProtChannels(CODE, 1.0, 8), packing=Packing(20, LATIN)),
    Plan(ProtChannels(CODE, 1.0, 8), packing=Packing(20, LATIN, cut=True)),
    Plan(ProtChannels(CODE, 1.0, 16)),
    Plan(ProtChannels(CODE, 1.1, 8)),
    Plan(ProtChannels(CODE, np.nextafter(1.0, 2), 8)),
    Plan(ProtChannels(CODE, 1.0, 8, blank=True)),
    Plan(ProtChannels(CODE, 1.0, 8, blank=True, empty=0.5)),
    Plan(ProtChannels(code_of_symbols(20, 512), 1.0, 8)),
    Plan(ProtChannels(code_of_symbols(20, 512), 1.0, 8, width=2)),
    Plan(ProtChannels(hadamard_code(12), 1.0, 8, width=12)),
    Plan(CashChannels(CODE, 1.0, 8)),
    Plan(CashChannels(CODE, 1.0, 8, 1e-5)),
]
SERVER = [{"list_size": 2}, {"decision": "hard"}, {"fdr": 0.01}]


class TestTravelling:
    def test_fingerprints_tell_public_parameters_apart(self):
        assert len({plan.fingerprint for plan in PUBLIC}) == len(PUBLIC)
        assert all(plan.form.fingerprint == plan.fingerprint < 2**32 for plan in PUBLIC)
        for server in SERVER:  # which clients need not know
            assert Plan(PUBLIC[0].channels, **server).fingerprint == PUBLIC[0].fingerprint

    @pytest.mark.parametrize("plan", PUBLIC, ids=range(len(PUBLIC)))
    @pytest.mark.parametrize("server", [{}, *SERVER], ids=str)
    def test_they_come_back_from_text(self, plan, server):
        plan = Plan(plan.channels, plan.hash_seed, packing=plan.packing, **server)
        items = np.random.default_rng(1).integers(0, 2, (20, plan.k), dtype=np.uint8)
        for again in (Plan.from_json(plan.to_json()), pickle.loads(pickle.dumps(plan))):
            assert again.to_json() == plan.to_json()
            assert again.fingerprint == plan.fingerprint
            assert again.form == plan.form
            assert again.packing == plan.packing
            assert (again.list_size, again.decision, again.fdr) == (
                plan.list_size, plan.decision, plan.fdr)  # fmt: skip
            mixed = plan.mixing.mix(items)
            np.testing.assert_array_equal(again.mixing.mix(items), mixed)
            np.testing.assert_array_equal(again.channel_of(mixed), plan.channel_of(mixed))
            assert (again.channels.noise, again.channels.shape) == (
                plan.channels.noise, plan.channels.shape)  # fmt: skip

    def test_hash_and_mixing_each_have_a_stream_of_their_own(self):
        items = np.random.default_rng(1).integers(0, 2, (64, 20), dtype=np.uint8)
        for seed in (0, 1):
            plan = Plan(PUBLIC[0].channels, seed)
            of_hash, of_mixing = (
                np.random.SeedSequence([seed], spawn_key=(number,)) for number in (0, 1)
            )
            [key] = of_mixing.generate_state(1, np.uint64).tolist()
            np.testing.assert_array_equal(plan.mixing.mix(items), Mixing(20, key).mix(items))
            expected = ChannelHash(20, plan.channels.count, of_hash)(items)
            np.testing.assert_array_equal(plan.channel_of(items), expected)

    @pytest.mark.parametrize(
        "text",
        ["", "{}", "[]", "null", "7", '{"public": {}, "server": {}}', "not json", "[" * 100_000],
        ids=range(8),
    )
    def test_what_is_no_plan(self, text):
        with pytest.raises(ValueError, match=r"^text is not a plan, as `Plan.to_json` writes it"):
            Plan.from_json(text)

    def test_a_part_that_is_missing_or_new(self):
        whole = json.loads(PUBLIC[0].to_json())
        for name in set(whole["public"]) - {"delta"}:  # which is Cash's
            less = {**whole, "public": {k: v for k, v in whole["public"].items() if k != name}}
            with pytest.raises(ValueError, match=r"^text is not a plan"):
                Plan.from_json(json.dumps(less))
        more = {**whole, "server": {**whole["server"], "groups": 3}}
        with pytest.raises(ValueError, match=r"^text is not a plan"):
            Plan.from_json(json.dumps(more))

    @pytest.mark.parametrize(
        ("name", "value"),
        [("protocol", "Foo"), ("blank", "yes"), ("blank", None), ("more", 1)],
    )
    def test_what_would_be_understood_as_something_else(self, name, value):
        whole = json.loads(PUBLIC[0].to_json())
        whole["public"][name] = value
        with pytest.raises(ValueError, match=r"^(text is not a plan|protocol = |blank = )"):
            Plan.from_json(json.dumps(whole))

    def test_a_wrong_number_in_it_is_named(self):
        text = PUBLIC[0].to_json().replace('"count": 8', '"count": 9')
        with pytest.raises(ValueError, match=r"^count = 9: channels need a power of two"):
            Plan.from_json(text)


def test_cost_is_counted():
    plan = Plan.choose(10**6, 40, 2.0, count=4)
    cost = plan.cost(1000)
    assert cost.report == plan.report_size == 24
    assert cost.state == plan.channels.empty().nbytes + 1000
    assert cost.collect == 1000
    cash = Plan.choose(10**6, 40, 2.0, count=4, protocol="Cash")
    assert cash.cost(10).collect == 10 * 4 * cash.channels.code.n
    with pytest.raises(ValueError, match=r"^clients = -1: needs a whole number from 0"):
        plan.cost(-1)
