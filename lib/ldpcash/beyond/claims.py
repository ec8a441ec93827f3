"""The annex's part of the ledger: what this project says beyond the paper, and what decides it.

It is kept as `ldpcash.paper.ledger` says, a function for each statement. The place is the notebook
that makes it.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ldpcash.beyond.accounting import spent_epsilon
from ldpcash.beyond.audit import (
    audit,
    farthest_items,
    joint_odds,
    randomizer_of,
    rounding_score,
    ruled_out,
)
from ldpcash.beyond.bodies import body
from ldpcash.beyond.codes import code_for_privacy, merit
from ldpcash.beyond.compare import CONTENDERS, Case, client_noise, smallest_frequencies
from ldpcash.beyond.converse import clients_needed, least_frequency, most_told, most_told_of_all
from ldpcash.beyond.defence import planted_items, simulated_cheats
from ldpcash.beyond.faults import FloatNoise, HalfSensitivity, LazyCoin, SilentCrowd, reused_noise
from ldpcash.beyond.histograms import NO_BLANK, OURS, PEM, Score, Setting, measure, recall_at
from ldpcash.codec.hadamard import hadamard_code
from ldpcash.histogram.plan import Plan, threshold
from ldpcash.histogram.prot_channels import ProtChannels
from ldpcash.histogram.symbols import SymbolResponse, symbol_code
from ldpcash.paper import ledger
from ldpcash.paper.claims import CODE, DELTA
from ldpcash.paper.experiments import crossing
from ldpcash.paper.ledger import FAILS, HOLDS, Claim, Finding, Lab, rate_of
from ldpcash.paper.theory import noise_crossing, simplex_limit, strength_at
from ldpcash.privacy.answers import Answers
from ldpcash.privacy.calibration import gaussian_sigma
from ldpcash.protocols.blank import Blank
from ldpcash.protocols.cash import Cash
from ldpcash.protocols.prot import Prot
from ldpcash.simulation.points import Point, parameters_of
from ldpcash.simulation.sweeps import sweep
from ldpcash.simulation.trials import binomial_interval

BEYOND: list[Claim] = []
claim = partial(ledger.claim, book=BEYOND)


def verdict(true: bool) -> str:
    return HOLDS if true else FAILS


# The fair comparison


@claim(
    "10_fair_comparison",
    "With soft decoding for all, nobody finds an item of 8 bits more than 5 % rarer than Blank does"
    " at epsilon = 0.5, 2 and 4, and from 2 on nobody one less than 25 % more frequent",
)
def fair(lab: Lab) -> Finding:
    epsilons = (0.5, 2.0, 4.0)
    cases = [Case(name, e, 4000, 1e-2) for e in epsilons for name in CONTENDERS]
    etas = smallest_frequencies(
        cases, lab.seed, min_errors=lab.min_errors, max_trials=lab.max_trials
    )
    found = {
        (case.epsilon, case.name): 1.0 if eta is None else eta
        for case, eta in zip(cases, etas, strict=True)
    }
    measured = "smallest f with BLER 1e-2, N = 4000 (1: none): " + "; ".join(
        f"epsilon = {e:g}: " + ", ".join(f"{name} {found[e, name]:.3f}" for name in CONTENDERS)
        for e in epsilons
    )
    others = [name for name in CONTENDERS if name != "Blank"]
    ahead = {e: min(found[e, name] for name in others) / found[e, "Blank"] for e in epsilons}
    return Finding(measured, verdict(min(ahead.values()) > 0.95 and min(ahead[2], ahead[4]) > 1.25))


@claim(
    "10_fair_comparison",
    "Of the paper's two, at sensitivity 2 and delta = 1e-4, from epsilon = 0.01 up, Cash needs less"
    " noise only above 8.87; and more than Blank at every epsilon",
)
def equal_noise(lab: Lab) -> Finding:
    equal = noise_crossing(DELTA)
    grid = [0.01, 0.1, 1.0, 4.0, 8.0, 8.8, 8.9, 12.0, 20.0]
    less = [e for e in grid if client_noise("Cash", e) < client_noise("Prot, soft", e)]
    more = min(client_noise("Cash", e) / client_noise("Blank", e) for e in grid)
    measured = (
        f"equal at {equal:.3f} (delta = 1e-4); less noise at epsilon = {less} of {grid}; at least"
        f" {more:.2f} times that of Blank"
    )
    return Finding(measured, verdict(less == [e for e in grid if e > 8.87] and more > 1))


# The open problem of Remark 1


@claim("11_sensitivity", "A code of length 64 has sensitivity 1.5 and weights 28, 32 and 36 only")
def bent(lab: Lab) -> Finding:
    code = code_for_privacy(64, 8)
    weights = code.weight_distribution()
    measured = f"sensitivity {code.sensitivity:g}, weights {weights}, by enumeration"
    right = set(weights) == {0, 28, 32, 36} and code.sensitivity == 1.5
    return Finding(measured, verdict(right))


@claim(
    "11_sensitivity", "It has 50 times fewer block errors than the paper's code at epsilon = 1.5"
)
def fifty_times(lab: Lab) -> Finding:
    setting: dict[str, Any] = {"epsilon": 1.5, "frequency": 0.7, "clients": 1000, "list_size": 16}
    rows = []
    # The ratio is about 68. With so many errors its estimate has a standard error of 4.4 %, and 50
    # is six of these away.
    for code, errors in (
        (CODE, 40 * lab.min_errors),
        (code_for_privacy(64, 8), 6 * lab.min_errors),
    ):
        point = Point(protocol="Cash", **setting, **parameters_of(code))
        rows += sweep([point], lab.seed, min_errors=errors, max_trials=2_000_000)
    paper, bent = rows
    measured = (
        f"f = 0.7, N = 1000: paper {rate_of(paper)}, bent {rate_of(bent)},"
        f" ratio {paper.rate / bent.rate:.0f}"
    )
    return Finding(measured, verdict(paper.rate > 50 * bent.rate))


@claim("11_sensitivity", "The simplex code of length 256 has all distances equal: merit 1")
def simplex(lab: Lab) -> Finding:
    code = code_for_privacy(256, 8)
    measured = f"merit {merit(code):g}, sensitivity {code.sensitivity:.4f}, by enumeration"
    return Finding(measured, verdict(merit(code) == 1))


# The limit


@claim(
    "12_limits",
    "The simplex code reaches the limit of the Gaussian mechanism; the paper's code"
    " is about 4 dB away",
)
def limit(lab: Lab) -> Finding:
    needed = strength_at(lambda t: simplex_limit(8, t), 1e-2)
    gaps = []
    for code, grid in ((CODE, [1.5, 1.75, 2.0]), (code_for_privacy(256, 8), [0.9, 1.0, 1.1, 1.2])):
        setting = {"protocol": "Cash", "frequency": 0.7, "list_size": 8, **parameters_of(code)}
        reached = crossing(lab.rows(*({**setting, "epsilon": e} for e in grid)), 1e-2) or math.nan
        strength = 0.7 * math.sqrt(1000) / gaussian_sigma(reached, DELTA, 1.0)
        gaps.append(20 * math.log10(strength / needed))
    measured = f"gap at BLER 1e-2: paper's code {gaps[0]:.2f} dB, simplex {gaps[1]:.2f} dB"
    return Finding(measured, verdict(3 < gaps[0] < 5 and abs(gaps[1]) < 0.6))


# Many items


@lru_cache(maxsize=4)
def _name_scores(seed: int, epsilon: float, trials: int) -> dict[str, Score]:
    """Histograms of a million census names by this project's method and by the peer's."""
    settings = [Setting(name, "census", 40, 1_000_000, epsilon) for name in (OURS, PEM)]
    return {score.setting.method: score for score in measure(settings, trials, seed)}


def shown(rate: tuple[float, float, float]) -> str:
    return f"{rate[0]:.3f} [{rate[1]:.3f}, {rate[2]:.3f}]"


@claim("13_histogram", "K channels cost Prot no privacy: the joint release is epsilon-LDP")
def joint_release(lab: Lab) -> Finding:
    worst = [
        joint_odds(ProtChannels(symbol_code(4, 3), 1.0, 8, 3, blank)) for blank in (False, True)
    ]
    measured = (
        "largest odds over all views of 8 channels:"
        f" exp({math.log(worst[0]):.6f}), with a blank exp({math.log(worst[1]):.6f}), epsilon 1"
    )
    right = all(math.isclose(odds, math.e, rel_tol=1e-9) for odds in worst)
    return Finding(measured, verdict(right))


@claim("13_histogram", "Symbols of the right size need the noise of optimal local hashing")
def symbol_noise(lab: Lab) -> Finding:
    ratios = []
    for epsilon in (1.0, 2.0, 4.0, 8.0):
        noise = SymbolResponse.best(epsilon).noise(empty=0.0)
        ratios.append(noise / (2 * math.exp(epsilon / 2) / math.expm1(epsilon)))
    measured = "noise over the optimum at epsilon 1, 2, 4, 8: " + ", ".join(
        f"{r:.4f}" for r in ratios
    )
    return Finding(measured, verdict(max(ratios) < 1.02))


@claim(
    "13_histogram",
    "With a million clients at epsilon = 2 the histogram finds at least 95 % of the ten top names",
)
def finds_names(lab: Lab) -> Finding:
    score = _name_scores(lab.seed, 2.0, 8)[OURS]
    measured = f"recall {shown(score.recall(10))}, {score.total.false} of {score.total.found} false"
    return Finding(measured, verdict(score.recall(10)[0] >= 0.95 and score.false_rate < 0.1))


@claim("13_histogram", "At epsilon = 1 the histogram still finds more than half of them")
def finds_names_at_one(lab: Lab) -> Finding:
    score = _name_scores(lab.seed, 1.0, 8)[OURS]
    measured = f"recall {shown(score.recall(10))}, {score.total.false} of {score.total.found} false"
    return Finding(measured, verdict(score.recall(10)[0] > 0.5 and score.false_rate < 0.3))


@claim("13_histogram", "The histogram's frequencies are closer than those of PEM + OLH")
def frequencies_are_closer(lab: Lab) -> Finding:
    scores = _name_scores(lab.seed, 2.0, 8)
    mine, peer = (scores[name].frequency_error for name in (OURS, PEM))
    measured = f"mean error at epsilon 2, N = 10^6: {mine:.5f} against {peer:.5f}"
    return Finding(measured, verdict(mine < peer))


@claim("13_histogram", "Cash extends to many items, but needs more noise and K n numbers a report")
def cash_needs_more(lab: Lab) -> Finding:
    noise, size = [], []
    for protocol in ("Prot", "Cash"):
        plan = Plan.choose(1_000_000, 40, 2.0, protocol=protocol)
        noise.append(plan.channels.noise)
        size.append(plan.report_size)
    measured = (
        f"noise {noise[1] / noise[0]:.2f} times that of symbols; {size[1]} bytes against {size[0]}"
    )
    return Finding(measured, verdict(noise[1] > 3 * noise[0] and size[1] > 1000 * size[0]))


@claim(
    "13_histogram",
    "On words that no setting was tuned on, its 95 % intervals hold the true frequency of 93 to"
    " 97 % of the items found, and at most 5 % are false",
)
def intervals_hold(lab: Lab) -> Finding:
    settings = [
        Setting(OURS, name, k, 1_000_000, epsilon)
        for name, k in (("english", 64), ("german", 40))
        for epsilon in (2.0, 4.0)
    ]
    scores = measure(settings, 4, lab.seed)
    true, covered, found, false = (
        sum(counts)
        for counts in zip(
            *((s.true, s.total.covered, s.total.found, s.total.false) for s in scores), strict=True
        )
    )
    rate = covered / true, *binomial_interval(covered, true)
    measured = f"N = 10^6, epsilon 2 and 4: {shown(rate)} of {true}, {false} of {found} false"
    right = rate[1] < 0.97 and rate[2] > 0.93 and false <= 0.05 * found
    return Finding(measured, verdict(right))


# Privacy in practice


@claim(
    "14_privacy_in_practice",
    "One report with noise in floating point rules out a bit of most clients; on the grid, of none",
)
def rounding_leaks(lab: Lab) -> Finding:
    rng = np.random.default_rng(lab.seed)
    item, _ = farthest_items(CODE)
    shares = [
        float(
            ruled_out(randomizer_of(kind(CODE, 1.0))(item, lab.frames, rng)).any(axis=(0, 2)).mean()
        )
        for kind in (FloatNoise, Cash)
    ]
    measured = f"clients that lose a bit at epsilon = 1: {shares[0]:.3f} and {shares[1]:.3f}"
    return Finding(measured, verdict(shares[0] > 0.5 and shares[1] == 0))


@claim(
    "14_privacy_in_practice",
    "On the grid delta is not larger than asked, and the noise larger by less than a part in 10^4",
)
def grid_keeps_the_promise(lab: Lab) -> Finding:
    protocols = [Cash(CODE, epsilon) for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)]
    delta = max(cash.grid.delta(cash.epsilon) for cash in protocols)
    more = max(cash.grid.scale * cash.grid.step / cash.sigma for cash in protocols)
    measured = f"at six epsilons: delta at most {delta:.6e}, noise at most 1 + {more - 1:.0e} sigma"
    return Finding(measured, verdict(delta <= DELTA and more < 1 + 1e-4))


@claim(
    "14_privacy_in_practice",
    "The audit finds over half of the worst pair's epsilon, nine tenths of it for Prot and Blank,"
    " never more, and every planted fault",
)
def audit_has_teeth(lab: Lab) -> Finding:
    rng = np.random.Generator(np.random.SFC64(lab.seed))
    pair = farthest_items(CODE)
    score = rounding_score(CODE, *pair)
    honest = [
        audit(randomizer_of(protocol), *pair, 1.0, delta, 100 * lab.frames, rng).epsilon
        for protocol, delta in ((Cash(CODE, 1.0), DELTA), (Prot(CODE, 1.0), 0.0))
    ]
    short = hadamard_code(4)
    one, other = farthest_items(short)
    honest += [
        audit(randomizer_of(Blank(short, 1.0)), one, far, 1.0, 0.0, 100 * lab.frames, rng).epsilon
        for far in (other, None)
    ]
    faults = [
        audit(fault, *pair, 1.0, delta, 30 * lab.frames, rng, 1 - 1e-6, [score]).epsilon
        for fault, delta in (
            (randomizer_of(FloatNoise(CODE, 1.0)), DELTA),
            (randomizer_of(HalfSensitivity(CODE, 1.0)), DELTA),
            (reused_noise(Cash(CODE, 1.0)), DELTA),
            (randomizer_of(LazyCoin(CODE, 1.0)), 0.0),
        )
    ]
    silent = randomizer_of(SilentCrowd(short, 1.0))
    faults += [audit(silent, one, None, 1.0, 0.0, 30 * lab.frames, rng, 1 - 1e-6).epsilon]
    measured = (
        f"epsilon = 1 is at least {honest[0]:.2f} for Cash, {honest[1]:.2f} for Prot, and"
        f" {honest[2]:.2f} and, against nothing, {honest[3]:.2f} for Blank; with floating point,"
        " sensitivity 1, noise used twice, a lazy coin and a silent crowd at least "
        + ", ".join(f"{bound:.1f}" for bound in faults)
    )
    right = all(0.5 < bound <= 1 for bound in honest) and min(honest[1:]) > 0.9
    right = right and min(faults) > 1
    return Finding(measured, verdict(right))


@claim(
    "14_privacy_in_practice",
    "With every report checked, Cash falls to less than a fifth of the cheats that Prot withstands,"
    " at epsilon from 0.5 to 2",
)
def cheats(lab: Lab) -> Finding:
    rng = np.random.default_rng(lab.seed)
    found = {}
    for epsilon in (0.5, 1.0, 2.0):
        cash, prot = Cash(CODE, epsilon), Prot(CODE, epsilon)
        found[epsilon] = [
            simulated_cheats(protocol, 0.6, 100_000, 16, "bury", cash.limit, 100, rng)
            for protocol in (cash, prot)
        ]
    measured = "cheats that bury the item of 60000 of 100000 clients: " + "; ".join(
        f"epsilon = {epsilon:g}: Cash {few}, Prot {many}" for epsilon, (few, many) in found.items()
    )
    fewer = all(5 * few < many for few, many in found.values())
    return Finding(measured, verdict(fewer))


@claim(
    "14_privacy_in_practice",
    "A hundred reports of Prot cost less than half of their sum, if a delta of 1e-4 is allowed",
)
def optimal_composition(lab: Lab) -> Finding:
    basic, optimal = (spent_epsilon(Prot(CODE, 0.1), 100, delta) for delta in (0.0, DELTA))
    cash = spent_epsilon(Cash(CODE, 0.1), 100, DELTA)
    measured = (
        f"epsilon of 100 reports of 0.1 each: {basic:.3f} by sum, {optimal:.3f} by optimal"
        f" composition; Cash {cash:.3f}"
    )
    return Finding(measured, verdict(optimal < basic / 2))


@claim(
    "14_privacy_in_practice",
    "In a histogram at epsilon = 2, 2000 cheats among 100000 clients bring six false items into the"
    " table with seeds of their own, and at most half of them with tickets",
)
def tickets_hold(lab: Lab) -> Finding:
    rng = np.random.default_rng(lab.seed)
    plan, names = Plan.choose(100_000, 40, 2.0), body("census", 40)
    own, given = (
        np.mean([planted_items(plan, names, 100_000, 6, 2000, chosen, rng) for _ in range(8)])
        for chosen in (True, False)
    )
    measured = f"of six items, in 8 collections: {own:.2f} with seeds of their own, {given:.2f}"
    return Finding(measured, verdict(bool(own > 4.5 and given < 3)))


# The best randomizer


@claim(
    "15_best_randomizer",
    "For rare items Blank tells at least 97 % of what any report with pure privacy can, at epsilon"
    " from 0.25 to 8, and up to f = 0.3 at least 95 %",
)
def nearly_all_there_is(lab: Lab) -> Finding:
    least = {}
    for f in (0.0, 0.01, 0.1, 0.3):
        parts = [
            Answers.best(e, range(1, 9), f).told(f) / most_told(e, f)
            for e in np.geomspace(0.25, 8, 13).tolist()
        ]
        assert max(parts) <= 1
        least[f] = min(parts)
    measured = "at 13 epsilons at least " + ", ".join(
        f"{v:.4f} (f = {f:g})" for f, v in least.items()
    )
    return Finding(measured, verdict(least[0.0] > 0.97 and min(least.values()) > 0.95))


@claim("15_best_randomizer", "No randomizer with pure privacy tells more than the theorem says")
def nothing_above(lab: Lab) -> Finding:
    rng = np.random.default_rng(lab.seed)
    highest, count = 0.0, max(20, lab.frames // 100)
    for _ in range(count):
        epsilon, f = rng.choice([0.25, 0.5, 1.0, 2.0, 4.0]), rng.choice([0.003, 0.1, 0.5, 1.0])
        inputs, kinds = rng.integers(3, 14), rng.integers(2, 41)
        laws = rng.dirichlet(np.ones(kinds)) * np.exp(
            epsilon / 2 * rng.integers(0, 2, (inputs, kinds))
        )
        laws /= laws.sum(axis=1, keepdims=True)
        private = float(np.log(laws.max(axis=0) / laws.min(axis=0)).max())
        rows = f * laws[1:] + (1 - f) * laws[0]
        told = 2 * (rows * np.log(rows / rows.mean(axis=0))).sum(axis=1).mean() / f**2
        highest = max(highest, told / most_told(private, f))
    measured = f"the best of {count} random ones tells {highest:.3f} of it"
    return Finding(measured, verdict(highest <= 1))


@claim(
    "16_long_items",
    "Of 128 bits Blank finds an item with 1.5 times the clients that any protocol with pure privacy"
    " needs for a BLER of 0.05, at epsilon = 0.25, 1, 3 and 8",
)
def distance(lab: Lab) -> Finding:
    bits, level, N = 128, 0.05, 10**7
    points = []
    for epsilon in (0.25, 1.0, 3.0, 8.0):
        f = least_frequency(bits, level, epsilon, round(N / 1.5))
        case = Case("Blank", epsilon, N, level, bits)
        points.append(case.point(held=math.floor(f * N)))
    trials = lab.frames // 25
    rows = sweep(points, lab.seed, min_errors=trials, max_trials=trials)
    measured = "; ".join(f"epsilon = {row.point.epsilon:g}: {rate_of(row)}" for row in rows)
    return Finding(measured, verdict(all(row.rate <= level for row in rows)))


# Many items, against what people use


@claim(
    "17_peers",
    "At epsilon = 2 and 4 the histogram finds more names than PEM + OLH, and twice as many as"
    " Bitstogram and TreeHist",
)
def finds_more_than_peers(lab: Lab) -> Finding:
    found = {
        method: [
            measure([Setting(method, "census", 40, 1_000_000, e)], 8, lab.seed)[0].true / 8
            for e in (2.0, 4.0)
        ]
        for method in (OURS, PEM, "Bitstogram", "TreeHist")
    }
    measured = "true names at epsilon = 2 and 4: " + ", ".join(
        f"{name} {low:.1f} and {high:.1f}" for name, (low, high) in found.items()
    )
    mine, peer, *published = (sum(both) for both in found.values())
    return Finding(measured, verdict(mine > peer and mine > 2 * max(published)))


@claim(
    "17_peers",
    "At epsilon = 1, 2 and 4 it needs at most twice the clients that any method with pure privacy"
    " needs to find as many items of 40 bits",
)
def near_the_limit(lab: Lab) -> Finding:
    ratios, clients = {}, 1_000_000
    for epsilon in (1.0, 2.0, 4.0):
        noise = Plan.choose(clients, 40, epsilon).channels.noise
        frequency = (threshold(40, 0.05) + 1.0) * noise / math.sqrt(clients)
        found, of = recall_at(Setting(OURS, "census", 40, clients, epsilon), frequency, 6, lab.seed)
        told = most_told_of_all(epsilon) * frequency**2 / 2
        ratios[epsilon] = clients / clients_needed(40, 1 - found / of, told)
    measured = "clients over those of the limit: " + ", ".join(
        f"{ratio:.2f} at epsilon = {epsilon:g}" for epsilon, ratio in ratios.items()
    )
    return Finding(measured, verdict(1 <= min(ratios.values()) <= max(ratios.values()) < 2))


@claim(
    "17_peers",
    "Where nine clients in ten hold nothing, a blank saves two clients in five at epsilon = 2, and"
    " items are found that without it are not",
)
def blanks_save(lab: Lab) -> Finding:
    plain, blank = (SymbolResponse.best(2.0, share).noise(0.9) for share in (0.0, 0.9))
    frequency = (threshold(40, 0.05) + 0.5) * blank / 1000
    found = [
        recall_at(Setting(method, "census", 40, 1_000_000, 2.0, 0.9), frequency, 6, lab.seed)
        for method in (OURS, NO_BLANK)
    ]
    saved = 1 - (blank / plain) ** 2
    measured = (
        f"saves {saved:.3f}; found {found[0][0]} of {found[0][1]} with it, {found[1][0]} without"
    )
    return Finding(measured, verdict(saved > 0.39 and found[0][0] > 2 * found[1][0]))
