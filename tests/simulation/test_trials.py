"""Points, chunks and rows: held against closed forms, and against plain recomputation.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import dataclasses
import importlib
import itertools
import json
import math
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ldpcash import Cash, PolarCode, Prot, SCLDecoder
from ldpcash.paper.theory import biorthogonal_error, error_mean, signal_to_noise
from ldpcash.simulation import trials as simulate
from ldpcash.simulation.points import Point, parameters_of
from ldpcash.simulation.trials import (
    Row,
    Tally,
    binomial_interval,
    chunk_size,
    code_version,
    columns,
    run_chunk,
)

FALSE_ALARM = 1e-6
BIORTHOGONAL = (31, 47, 55, 59, 61, 62, 63)


def point(protocol="Cash", epsilon=2.0, frequency=0.6, clients=1000, **others):
    return Point(protocol=protocol, epsilon=epsilon, frequency=frequency, clients=clients, **others)


def sizes_of(point, max_trials):
    return list(
        itertools.takewhile(
            bool, (chunk_size(point, chunk, max_trials) for chunk in itertools.count())
        )
    )


class TestPoint:
    def test_says_all_of_what_it_stands_for(self):
        cash, prot = point(), point("Prot")
        assert (cash.decoder, cash.list_size, cash.exact, cash.delta) == ("SCL", 8, False, 1e-4)
        assert (cash.empty, cash.decision, cash.frequency_from) == (None, None, None)
        assert (prot.decoder, prot.list_size, prot.exact, prot.delta) == ("ML", None, None, None)
        assert (prot.empty, prot.decision, prot.frequency_from) == ("uniform", "hard", "mean")

    @pytest.mark.parametrize(
        "same",
        [
            {"decoder": "SCL"},
            {"list_size": 8},
            {"method": "pw", "delta": 1e-4, "exact": False},
            {"epsilon": np.float32(2), "clients": np.int64(1000), "delta": np.float64(1e-4)},
            {"clients": 1e3, "n": np.uint8(64), "list_size": np.int8(8)},
        ],
    )
    def test_is_the_same_with_its_defaults_given(self, same):
        assert point(**same) == point()
        assert point(**same).key == point().key

    @pytest.mark.parametrize(
        ("one", "same"),
        [
            ({"method": "ga", "design_sigma": 1}, {"method": "ga", "design_sigma": 1.0}),
            ({"method": "ga", "design_sigma": np.float32(1)}, {"method": "ga"}),
            ({"frequency": -0.0}, {"frequency": 0}),
            ({"k": 7, "info": np.array(BIORTHOGONAL)}, {"k": 7, "info": list(BIORTHOGONAL)}),
            ({"k": 7, "info": BIORTHOGONAL[::-1]}, {"k": 7, "info": BIORTHOGONAL}),
            ({"k": 1, "info": [3], "dynamic": {}}, {"k": 1, "info": [3]}),
            (
                {"k": 1, "info": [3], "dynamic": {9: [3]}},
                {"k": 1, "info": [3], "dynamic": [(9, [3])]},
            ),
        ],
    )
    def test_equal_points_have_one_key(self, one, same):
        assert point(**one) == point(**same)
        assert point(**one).key == point(**same).key

    @pytest.mark.parametrize(
        "other",
        [
            {"epsilon": 2.0000001},
            {"frequency": 0.7},
            {"clients": 999},
            {"n": 128},
            {"k": 7},
            {"method": "rm"},
            {"decoder": "ML"},
            {"list_size": 4},
            {"exact": True},
            {"delta": 1e-5},
            {"protocol": "Prot"},
        ],
    )
    def test_has_a_key_of_its_own(self, other):
        assert point(**other).key != point().key

    def test_a_code_s_parameters_build_it_again(self):
        code = PolarCode(8, [3, 5, 6], {7: [3, 6]})
        assert point(**parameters_of(code)).build().code == code

    def test_its_key_does_not_change_when_options_are_added(self):
        """Streams hang on it, and so does every figure: only parameters that are set may count."""
        given = {k: v for k, v in dataclasses.asdict(point()).items() if v is not None}
        assert set(given) == {
            *("protocol", "epsilon", "frequency", "clients", "n", "k", "method"),
            *("decoder", "list_size", "exact", "delta"),
        }
        assert point().key == "9bde0fbc7f1250246e8d4e3da31a62ae"

    def test_builds_its_protocol(self):
        built = point("Prot", decoder="SCL", list_size=4, decision="soft", empty="positive").build()
        assert isinstance(built, Prot)
        assert isinstance(built.decoder, SCLDecoder)
        assert (built.decoder.list_size, built.decision, built.empty) == (4, "soft", "positive")
        assert isinstance(point().build(), Cash)
        code = point(k=7, info=BIORTHOGONAL).build().code
        assert code.info.tolist() == list(BIORTHOGONAL)
        code = point(method="ga", design_sigma=1.5, n=256).build().code
        assert np.array_equal(code.info, PolarCode.construct(256, 8, "ga", 1.5).info)

    def test_travels(self):
        there = pickle.loads(pickle.dumps(point()))
        assert there == point()
        assert there.key == point().key
        assert json.loads(json.dumps(dataclasses.asdict(point())))["epsilon"] == 2.0

    def test_its_true_frequency_is_that_of_whole_clients(self):
        assert point(frequency=1 / 3, clients=100).true_frequency == 0.33

    @pytest.mark.parametrize(
        ("wrong", "sentence"),
        [
            ({"protocol": "Cache"}, "protocol = 'Cache': choose one of Cash, Prot"),
            ({"epsilon": 0.0}, "epsilon = 0.0: needs"),
            ({"epsilon": math.nan}, "epsilon = nan: needs"),
            ({"delta": 1.0}, "delta = 1.0: needs"),
            ({"frequency": 1.5}, "frequency = 1.5: needs a number from 0 to 1"),
            ({"clients": 0}, "clients = 0: needs a whole number from 1"),
            ({"clients": 10.5}, "clients = 10.5: needs a whole number from 1"),
            ({"clients": math.inf}, "clients = inf: needs a whole number from 1"),
            ({"clients": "many"}, "clients = 'many': needs a whole number from 1"),
            ({"clients": 10**19}, "clients = 10000000000000000000: needs a whole number from 1 to"),
            ({"epsilon": "2"}, "epsilon = '2': needs a number"),
            ({"epsilon": True}, "epsilon = True: needs a number"),
            ({"frequency": None}, "frequency = None: needs a number"),
            ({"delta": "small"}, "delta = 'small': needs a number"),
            ({"design_sigma": "1"}, "design_sigma = '1': needs a number"),
            ({"exact": "no"}, "exact = 'no': needs True or False"),
            ({"info": 5}, "info = 5: needs k whole numbers"),
            ({"decoder": ["SCL"]}, r"decoder = \['SCL'\]: choose one of SCL, ML"),
            ({"decoder": ""}, "decoder = '': choose one of SCL, ML"),
            ({"method": ""}, "method = ''"),
            ({"n": 60}, "n = 60: the length must be a power of two"),
            ({"k": 65}, "k = 65: needs a whole number from 1 to 64"),
            ({"info": BIORTHOGONAL}, r"info = \(31, .*\): needs k = 8 indices"),
            ({"info": BIORTHOGONAL, "k": 7, "method": "pw"}, "method = 'pw': give it or info"),
            ({"method": "magic"}, "method = 'magic'"),
            ({"dynamic": {63: [31]}}, "dynamic = .*: give info with it"),
            ({"k": 1, "info": [31], "dynamic": 5}, "dynamic = 5"),
            ({"k": 1, "info": [31], "dynamic": {30: [31]}}, "dynamic = .*: 31 comes after 30"),
            ({"decoder": "BP"}, "decoder = 'BP': choose one of SCL, ML"),
            ({"decoder": "ML", "list_size": 4}, "list_size = 4: MLDecoder has no such option"),
            ({"list_size": 0}, "list_size = 0: needs a whole number from 1"),
            ({"empty": "uniform"}, "empty = 'uniform': Cash has no such option"),
            ({"protocol": "Prot", "delta": 1e-4}, "delta = 0.0001: Prot has no such option"),
            ({"protocol": "Prot", "empty": "zero"}, "empty = 'zero': choose one of"),
            ({"k": 20, "decoder": "ML"}, r"code = \(64, 20\): an ML decoder holds all codewords"),
        ],
    )
    def test_a_wrong_parameter_is_named_at_once(self, wrong, sentence):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            point(**wrong)


class TestChunks:
    @pytest.mark.parametrize("max_trials", [1, 1023, 1024, 1025, 7168, 10**6 + 1])
    @pytest.mark.parametrize("n", [64, 1024])
    def test_sizes_grow_up_to_a_limit_and_add_up(self, max_trials, n):
        sizes = sizes_of(point(n=n), max_trials)
        largest = 2**25 // (8 * n)
        assert sum(sizes) == max_trials
        assert chunk_size(point(n=n), len(sizes) + 1, max_trials) == 0
        assert sizes[:-1] == [min(1024 << i, largest) for i in range(len(sizes) - 1)]
        assert 0 < sizes[-1] <= largest

    def test_more_trials_only_add_chunks(self):
        assert sizes_of(point(), 7000)[:2] == sizes_of(point(), 10**6)[:2]

    @pytest.mark.parametrize("list_size", [1, 7, 100, 1000, 10**6])
    def test_of_any_cost(self, list_size):
        sizes = sizes_of(point(list_size=list_size), 50_000)
        assert sum(sizes) == 50_000
        assert sizes[:-1] == sorted(sizes[:-1])

    def test_however_many(self):
        assert chunk_size(point(), 10**9, 10**15) == 2**16

    def test_is_a_plain_count(self):
        """The same stream, the same draws, and everything counted with NumPy's own functions."""
        here = point("Prot", epsilon=0.7, frequency=0.55)
        tally = run_chunk(here, 5, 3, 5000, code_version())
        sequence = np.random.SeedSequence([5, int(here.key, 16)], spawn_key=(3,))
        rng = np.random.Generator(np.random.SFC64(sequence))
        errors, off = 0, []
        for trials in (4096, 904):
            items = rng.integers(0, 2, (8, trials), dtype=np.uint8).T
            y = here.build().mean_reports(items, 0.55, 1000, rng)
            estimate = here.build().estimate(y)
            wrong = (estimate.bits != items).any(axis=1)
            errors += wrong.sum()
            off.append(np.stack([abs(estimate.frequency - 0.55), wrong]))
        off, wrong = np.concatenate(off, axis=1)
        assert tally[:2] == (5000, errors)
        assert 0 < errors < 5000
        right = off[wrong == 0]
        row = Row.of(here, tally)
        assert row.rate == errors / 5000
        assert row.frequency_error == pytest.approx(off.mean(), rel=1e-12)
        assert row.frequency_error_se == pytest.approx(stats.sem(off), rel=1e-9)
        assert row.frequency_error_correct == pytest.approx(right.mean(), rel=1e-12)
        assert row.frequency_error_correct_se == pytest.approx(stats.sem(right), rel=1e-9)

    def test_streams_differ_by_seed_point_and_chunk(self):
        results = [
            run_chunk(here, seed, chunk, 100, code_version())
            for here in (point(), point(delta=1.0001e-4))
            for seed in (0, 1)
            for chunk in (0, 1)
        ]
        assert len({tally.off for tally in results}) == len(results)

    def test_error_rate_is_that_of_the_closed_form(self):
        """(64, 7) biorthogonal, whose ML error rate is one integral."""
        here = point(epsilon=1.5, k=7, info=BIORTHOGONAL, decoder="ML")
        tally = run_chunk(here, 1, 0, 40_000, code_version())
        snr = signal_to_noise(0.6, 1000, here.build().sigma)
        expected = biorthogonal_error(7, snr)
        assert 0.01 < expected < 0.5
        assert stats.binomtest(tally.errors, 40_000, expected).pvalue > FALSE_ALARM

    def test_frequency_error_is_half_normal_where_nothing_goes_wrong(self):
        here = point(epsilon=6.0, frequency=1.0)
        row = Row.of(here, run_chunk(here, 1, 0, 40_000, code_version()))
        assert row.errors == 0
        expected = error_mean(here.build().sigma, 1000)
        z = (row.frequency_error - expected) / row.frequency_error_se
        assert 2 * stats.norm.sf(abs(z)) > FALSE_ALARM
        assert row.frequency_error == row.frequency_error_correct
        # A half-normal's standard deviation is its mean times sqrt(pi / 2 - 1).
        assert row.frequency_error_se * 200 == pytest.approx(
            expected * math.sqrt(math.pi / 2 - 1), rel=0.05
        )

    def test_another_version_of_the_code_is_refused(self):
        with pytest.raises(RuntimeError, match="a worker has another version"):
            run_chunk(point(), 1, 0, 10, "another")

    @pytest.mark.parametrize(
        "module", ["checks", "decode", "polar", "privacy", "protocols", "simulate"]
    )
    def test_the_version_is_a_hash_of_the_code_that_results_hang_on(
        self, tmp_path, monkeypatch, module
    ):
        package = tmp_path / "ldpcash"
        shutil.copytree(Path(simulate.__file__).parent, package)
        version = simulate._hash_of_code
        first = version(package)
        assert first == code_version()
        (package / "figures.py").write_text("# restyled")
        assert version(package) == first
        (package / f"{module}.py").write_text("# faster")
        second = version(package)
        assert second != first
        monkeypatch.setattr(np, "__version__", "3.0")
        assert version(package) != second

    def test_the_version_is_that_of_the_code_that_was_imported(self, tmp_path):
        """Code that is changed on disk afterwards does not lend its name to what runs."""
        shutil.copytree(Path(simulate.__file__).parent, tmp_path / "ldpcash")
        script = (
            "from ldpcash import simulate\n"
            "open(simulate.__file__, 'a').write('# changed')\n"
            "print(simulate.code_version())"
        )
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        run = [sys.executable, "-c", script]
        printed = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
        assert printed.stdout.strip() == code_version()

    def test_results_do_not_depend_on_threads_or_cpu_features(self):
        """Other BLAS kernels, one thread, no SIMD beyond the baseline: the same sums."""
        script = (
            "from ldpcash.simulation.trials import *\n"
            "for p in ('Cash', 'Prot'):\n"
            "  point = Point(protocol=p, epsilon=1.0, frequency=0.6, clients=1000)\n"
            "  print(repr(run_chunk(point, 1, 0, 3000, code_version())))"
        )
        core = np._core._multiarray_umath
        features = " ".join(f for f in core.__cpu_dispatch__ if core.__cpu_features__[f])
        plain = {
            "OPENBLAS_NUM_THREADS": "1",
            "OPENBLAS_CORETYPE": "Nehalem",
            "NPY_DISABLE_CPU_FEATURES": features,
        }
        outputs = {
            subprocess.run(
                [sys.executable, "-W", "ignore", "-c", script],
                env={**os.environ, **env},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for env in ({}, plain)
        }
        assert len(outputs) == 1


class TestRows:
    def test_nothing_right_or_a_single_trial_is_not_a_number(self):
        row = Row.of(point(), Tally(3, 3, 0.3, 0.03, 0.0, 0.0))
        assert (row.rate, row.high) == (1.0, 1.0)
        assert row.frequency_error == pytest.approx(0.1)
        assert row.frequency_error_se == pytest.approx(0.0, abs=1e-8)
        assert math.isnan(row.frequency_error_correct)
        assert math.isnan(row.frequency_error_correct_se)
        assert math.isnan(Row.of(point(), Tally(1, 0, 0.1, 0.01, 0.1, 0.01)).frequency_error_se)

    def test_columns_are_parameters_then_results(self):
        rows = [Row.of(p, Tally(10, 1)) for p in (point(), point("Prot"))]
        table = columns(rows)
        assert table["protocol"] == ["Cash", "Prot"]
        assert table["delta"] == [1e-4, None]
        assert table["errors"] == [1, 1]
        assert "info" not in table
        assert list(table)[-10:-7] == ["frequency_from", "trials", "errors"]
        assert columns([]).keys() == {f.name for f in dataclasses.fields(Row)} - {"point"}


class TestInterval:
    @pytest.mark.parametrize(("errors", "trials"), [(0, 7), (1, 1), (3, 1000), (999, 1000)])
    @pytest.mark.parametrize("confidence", [0.95, 0.999])
    def test_is_clopper_and_pearson_s(self, errors, trials, confidence):
        expected = stats.binomtest(errors, trials).proportion_ci(confidence)
        assert binomial_interval(errors, trials, confidence) == pytest.approx(tuple(expected))

    def test_covers_under_the_stopping_rule(self):
        """Exact: the law of (chunks, errors) when a sweep stops, at 100 errors or 7168 trials."""
        sizes = [1024, 2048, 4096]
        coverages = []
        for rate in np.geomspace(0.002, 0.2, 60):
            reached = np.array([1.0])  # probability of each number of errors so far, still going
            covered, trials = 0.0, 0
            for i, size in enumerate(sizes):
                trials += size
                reached = np.convolve(reached, stats.binom.pmf(np.arange(size + 1), size, rate))
                stops = np.arange(len(reached)) >= (0 if i == len(sizes) - 1 else 100)
                for errors in np.flatnonzero(stops & (reached > 1e-9)):
                    low, high = binomial_interval(int(errors), trials)
                    covered += reached[errors] * (low <= rate <= high)
                reached = np.where(stops, 0.0, reached)
            coverages.append(covered)
        assert min(coverages) > 0.935
        assert np.mean(np.array(coverages) > 0.95) > 0.8

    @pytest.mark.parametrize(
        ("wrong", "name"),
        [
            ((-1, 10), "errors = -1"),
            ((11, 10), "errors = 11"),
            ((0.5, 10), "errors = 0.5"),
            ((0, 0), "trials = 0"),
            ((1, 10, 0.0), "confidence = 0.0"),
            ((1, 10, 1.0), "confidence = 1.0"),
        ],
    )
    def test_refuses_nonsense(self, wrong, name):
        with pytest.raises(ValueError, match=f"^{name}: needs a"):
            binomial_interval(*wrong)


class TestCodeVersion:
    def test_a_protocol_of_one_s_own_counts(self, tmp_path, monkeypatch):
        """Or results of a mistake would be found again after it was mended."""
        versions = [code_version()]
        for number, text in enumerate(["", "# mended", ""]):
            path = tmp_path / f"own{number}.py"
            path.write_text(f"from ldpcash import Cash\nclass Own(Cash): pass\n{text}")
            monkeypatch.syspath_prepend(tmp_path)
            own = importlib.import_module(path.stem).Own
            monkeypatch.setitem(simulate.PROTOCOLS, "Own", own)
            versions.append(code_version())
        assert versions[1] == versions[3]
        assert len(set(versions)) == 3

    def test_one_without_a_file_is_never_the_same(self, monkeypatch):
        versions = []
        for _ in range(2):
            names = {"__name__": "nowhere"}
            exec("from ldpcash import Cash\nclass Own(Cash): pass", names)
            monkeypatch.setitem(simulate.PROTOCOLS, "Own", names["Own"])
            versions += [code_version(), code_version()]
        assert versions[0] == versions[1] != versions[2] == versions[3]
