"""Bring the optical failure data set of Scuola Superiore Sant'Anna into tidy form for the benchmark of quality.

    git clone https://github.com/Network-And-Services/optical-failure-dataset
    python scripts/prepare_optical_failure.py optical-failure-dataset DIR/optical_failure

Two transponders (OSNR, bit error rate) and four amplifiers (input and output power) of a line of 240 km report every
three seconds or so, a line each. A tidy row holds the last report of each within four seconds; it is a failure if any
of its lines says so. Bit error rates become logarithms, 1e-12 standing for none.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.bench.command import run_command
from scripts.bench.quality_tidy import write_tidy

STEP_S = 4
LEAST_BER = 1e-12
FILES = {"hard": "HardFailure_dataset.csv", "soft": "SoftFailure_dataset.csv"}
COLUMNS = {
    **{f"spo{n}_osnr_db": (f"SPO{n}/18/11", "OSNR") for n in (1, 2)},
    **{f"ampli{n}_in_power_dbm": (f"Ampli{n}", "InputPower") for n in (1, 2, 3, 4)},
    **{f"ampli{n}_out_power_dbm": (f"Ampli{n}", "OutputPower") for n in (1, 2, 3, 4)},
    **{f"spo{n}_log10_ber": (f"SPO{n}/18/11", "BER") for n in (1, 2)},
}
SPLIT = """
hard,,1623427359,train
hard,1623427359,1623428360,val
hard,1623428360,,test
soft,,1624479737,train
soft,1624479737,1624481974,val
soft,1624481974,,test
"""


def tidy(lines: pd.DataFrame, series: str) -> pd.DataFrame:
    """Lines of one file as rows: series, timestamp, a column for each device and metric, label."""
    lines = lines.assign(timestamp=lines["Timestamp"] // STEP_S * STEP_S).sort_values("Timestamp", kind="stable")
    last = lines.groupby(["timestamp", "ID"]).last().unstack("ID")
    rows = pd.DataFrame({name: last[(metric, device)] for name, (device, metric) in COLUMNS.items()})
    for column in rows.filter(like="ber"):
        rows[column] = np.log10(rows[column].clip(lower=LEAST_BER))
    failed = lines["Failure"].notna().groupby(lines["timestamp"]).any()
    rows["label"] = np.where(failed.reindex(rows.index), f"{series}_failure", "normal")
    rows.insert(0, "series", series)
    return rows.reset_index()[["series", "timestamp", *COLUMNS, "label"]]


def main() -> None:
    """Read both files, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="clone of the repository")
    parser.add_argument("directory", type=Path, help="is written")
    options = parser.parse_args()
    read = [tidy(pd.read_csv(options.source / file), series) for series, file in FILES.items()]
    write_tidy(options.directory, pd.concat(read, ignore_index=True), SPLIT)


if __name__ == "__main__":
    run_command(main)
