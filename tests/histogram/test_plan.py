"""Public parameters: the rule that sets them, and what it finds.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

from itertools import product

import numpy as np
import pytest
import scipy

from ldpcash.codec.polar import PolarCode
from ldpcash.histogram.cash_channels import CashChannels
from ldpcash.histogram.plan import Plan, threshold
from ldpcash.histogram.population import draw_collector
from ldpcash.histogram.prot_channels import ProtChannels
from ldpcash.histogram.symbols import symbol_code


def test_the_rule():
    plan = Plan.choose(10**6, 40, 1.0)
    channels = plan.channels
    assert (channels.width, channels.code.n, channels.count, plan.groups) == (2, 512, 256, 1)
    assert Plan.choose(10**5, 40, 1.0).channels.count == 64
    assert Plan.choose(10**6, 40, 4.0).channels.width == 6
    cash = Plan.choose(10**6, 40, 2.0, protocol="Cash")
    assert isinstance(cash.channels, CashChannels)
    assert cash.report_size == 19 + 4 * 128 * 256


def test_what_is_given_is_taken():
    code = PolarCode.construct(64, 20)
    plan = Plan.choose(1000, 20, 1.0, code=code, count=8, groups=3, list_size=4, fdr=0.01)
    assert plan.channels.code is code
    assert plan.channels.width == 1
    assert (plan.channels.count, plan.groups, plan.list_size, plan.fdr) == (8, 3, 4, 0.01)
    assert len(plan.hashes) == 3
    assert Plan.choose(1000, 20, 1.0, width=2).channels.width == 2


def test_smallest_is_found_every_other_time():
    """Of an item that is always decoded: a single bit's, in a code that cannot be mistaken."""
    plan = Plan.choose(10_000, 4, 1.0, count=1, hash_seed=1)
    item = np.array([[1, 0, 1, 1]], dtype=np.uint8)
    held = round(plan.smallest(10_000) * 10_000)
    rng = np.random.default_rng(1)
    found = sum(
        any((line.item == item[0]).all() for line in
            draw_collector(plan, item, [held], rng, 10_000 - held).histogram())
        for _ in range(300)
    )  # fmt: skip
    assert 0.5 - 0.2 < found / 300 < 0.5 + 0.2  # 7 standard errors; the best word may be another


def test_wrong_arguments(subtests):
    for wrong in (
        {"protocol": "RAPPOR"},
        {"clients": 0},
        {"k": 0},
        {"groups": 0},
        {"decision": "firm"},
        {"fdr": 1.0},
        {"fdr": 0},
        {"fdr": -1},
        {"fdr": None},
        {"list_size": 0},
        {"width": 3, "protocol": "Cash"},
        {"hash_seed": -1},
        {"count": 12},
        {"epsilon": 0.0},
        {"code": PolarCode.construct(64, 8)},
    ):
        with (
            subtests.test(wrong=wrong),
            pytest.raises(ValueError, match=f"^{next(iter(wrong))} = "),
        ):
            Plan.choose(**{"clients": 100, "k": 20, "epsilon": 1.0, **wrong})


def test_numbers_of_any_kind_become_plain():
    plain = {"hash_seed": 3, "groups": 2, "list_size": 8, "fdr": 0.5}
    for kind in (float, np.float64, lambda x: np.int64(x) if x > 1 else np.float32(x)):
        plan = Plan.choose(1000, 20, 1.0, **{name: kind(x) for name, x in plain.items()})
        assert {name: getattr(plan, name) for name in plain} == plain
        assert [type(getattr(plan, name)) for name in plain] == [int, int, int, float]
        assert plan.fingerprint == Plan.choose(1000, 20, 1.0, **plain).fingerprint


def test_the_rule_finds_short_and_long_items(subtests):
    """60 of 100 clients hold it, hundreds of standard errors."""
    for k, epsilon in product([1, 2, 4, 6, 100, 128], [2.5, 3.5, 4.0, 6.0]):
        with subtests.test(k=k, epsilon=epsilon):
            plan = Plan.choose(100_000, k, epsilon, count=4)
            item = np.random.default_rng(k).integers(0, 2, (1, k), dtype=np.uint8)
            rng = np.random.default_rng(1)
            line = draw_collector(plan, item, [60_000], rng, 40_000).histogram()[0]
            np.testing.assert_array_equal(line.item, item[0])
            assert line.frequency == pytest.approx(0.6, abs=0.02)


def test_threshold_is_the_normal_one():
    assert threshold(10, 0.05) == pytest.approx(scipy.stats.norm.isf(0.05 / 1024))


def test_fingerprints_tell_public_parameters_apart():
    code, symbols = PolarCode.construct(64, 20), symbol_code(20, 2, 6.0, 64)
    plans = [
        Plan(ProtChannels(code, 1.0, 8)),
        Plan(ProtChannels(code, 1.0, 8), hash_seed=1),
        Plan(ProtChannels(code, 1.0, 8), groups=2),
        Plan(ProtChannels(code, 1.0, 16)),
        Plan(ProtChannels(code, 1.1, 8)),
        Plan(ProtChannels(symbols, 1.0, 8)),
        Plan(ProtChannels(symbols, 1.0, 8, width=2)),
        Plan(CashChannels(code, 1.0, 8)),
        Plan(CashChannels(code, 1.0, 8, 1e-5)),
    ]
    assert len({plan.fingerprint for plan in plans}) == len(plans)
    assert Plan(ProtChannels(code, 1.0, 8), list_size=2).fingerprint == plans[0].fingerprint
