"""Chunks and rows: held against closed forms, and against plain recomputation.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import dataclasses
import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy

from ldpcash.paper.theory import biorthogonal_error, error_mean, signal_to_noise
from ldpcash.simulation.points import Point
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
        assert row.frequency_error_se == pytest.approx(scipy.stats.sem(off), rel=1e-9)
        assert row.frequency_error_correct == pytest.approx(right.mean(), rel=1e-12)
        assert row.frequency_error_correct_se == pytest.approx(scipy.stats.sem(right), rel=1e-9)

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
        assert scipy.stats.binomtest(tally.errors, 40_000, expected).pvalue > FALSE_ALARM

    def test_frequency_error_is_half_normal_where_nothing_goes_wrong(self):
        here = point(epsilon=6.0, frequency=1.0)
        row = Row.of(here, run_chunk(here, 1, 0, 40_000, code_version()))
        assert row.errors == 0
        expected = error_mean(here.build().sigma, 1000)
        z = (row.frequency_error - expected) / row.frequency_error_se
        assert 2 * scipy.stats.norm.sf(abs(z)) > FALSE_ALARM
        assert row.frequency_error == row.frequency_error_correct
        # A half-normal's standard deviation is its mean times sqrt(pi / 2 - 1).
        assert row.frequency_error_se * 200 == pytest.approx(
            expected * math.sqrt(math.pi / 2 - 1), rel=0.05
        )

    def test_another_version_of_the_code_is_refused(self):
        with pytest.raises(RuntimeError, match="a worker has another version"):
            run_chunk(point(), 1, 0, 10, "0" * 32)

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
        expected = scipy.stats.binomtest(errors, trials).proportion_ci(confidence)
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
                reached = np.convolve(
                    reached, scipy.stats.binom.pmf(np.arange(size + 1), size, rate)
                )
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
