"""Do the histogram's intervals cover, on text that no setting was tuned on?

`make coverage` measures it for two languages, three sizes of items, two numbers of clients and four
privacies, and writes `tools/coverage.csv`. A cell where nothing is found has no coverage. It takes
half an hour, which is why no notebook does it; `13_histogram` does a part.
"""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

from ldpcash.base.workers import Processes, cores
from ldpcash.beyond.bodies import LENGTHS
from ldpcash.beyond.histograms import OURS, Setting, measure

TABLE = Path(__file__).with_name("coverage.csv")
TRIALS = {1.0: 64, 2.0: 32, 4.0: 12, 8.0: 4}  # for each epsilon: the larger, the more is found


def main() -> None:
    with Processes(cores()) as executor, TABLE.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        counted = ("top10", "found", "false", "covered")
        table.writerow(
            ["body", "k", "clients", "epsilon", "trials", *counted, "coverage", "low", "high"]
        )
        for body, k, clients, epsilon in product(
            ("english", "german"), LENGTHS, (100_000, 1_000_000), TRIALS
        ):
            setting = Setting(OURS, body, k, clients, epsilon)
            [score] = measure([setting], TRIALS[epsilon], 2026, executor)
            total = score.total
            rate = [f"{x:.4f}" for x in score.coverage] if score.true else ["", "", ""]
            counts = [getattr(total, name) for name in counted]
            row = [body, k, clients, f"{epsilon:g}", score.trials, *counts, *rate]
            table.writerow(row)
            file.flush()
            print(*row)


if __name__ == "__main__":
    main()
