"""Bring the KDDI IP core data (ITU AI/ML in 5G Challenge, PS-032) into tidy form for the benchmark of quality.

    git clone https://github.com/ITU-AI-ML-in-5G-Challenge/ITU-ML5G-PS-032-KDDI-naist-lsm
    python scripts/prepare_kddi_ipcore.py ITU-ML5G-PS-032-KDDI-naist-lsm DIR/kddi_ipcore

One table for each metric, rows in any order, a column for each interface or node, times in Japan. A tidy row holds the
whole network at one minute. Labels are there for stable minutes only; so are the rates `in_pps` and `out_pps` of the
learning week. MIT licence.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.bench.command import run_command
from scripts.bench.quality_tidy import snake_case, write_tidy

PLACES = {"learning": Path("dataset"), "evaluation": Path("dataset_eval")}
TABLES = {
    "tx_pps": "tx-pps.tsv",
    "rx_pps": "rx-pps.tsv",
    "in_pps": "network-incoming-packets-rate.tsv",
    "out_pps": "network-outgoing-packets-rate.tsv",
    "admin_up": "admin-status.tsv",
    "cpu_pct": "cpu_util.tsv",
    "prefixes": "prefix-activity-received-current-prefixes.tsv",
}
CLASSES = ("normal", "bgp_hijacking", "bgp_injection", "node_down", "interface_down", "packet_loss", "packet_delay")
"""By the number of the status."""
SPLIT = """
learning,,1593890079,train
learning,1593890079,,val
evaluation,,,test
"""


def read_table(directory: Path, name: str) -> pd.DataFrame:
    """One table by time; the one of stable minutes where there is no other."""
    path = directory / name if (directory / name).exists() else directory / "stable" / name
    table = pd.read_csv(path, sep="\t", index_col=0).drop_duplicates("timestamp")
    moments = pd.to_datetime(table.pop("timestamp").astype(str), format="%Y%m%d%H%M%S").dt.tz_localize("Asia/Tokyo")
    table.index = pd.Index(moments.astype("datetime64[s, UTC]").astype("int64"), name="timestamp")
    return table.sort_index()


def tidy(directory: Path, series: str) -> pd.DataFrame:
    """One week: series, timestamp, metrics, label."""
    tables = {kind: read_table(directory, name) for kind, name in TABLES.items()}
    every_minute = tables["tx_pps"].index
    named = [
        table.set_axis([f"{kind}__{snake_case(column)}" for column in table.columns], axis=1).reindex(every_minute)
        for kind, table in tables.items()
    ]
    rows = pd.concat(named, axis=1).copy()  # in one piece again
    status = read_table(directory, "label.tsv")["status"].reindex(every_minute)
    rows["label"] = ["" if pd.isna(number) else CLASSES[int(number)] for number in status]
    rows.insert(0, "series", series)
    return rows.reset_index()


def main() -> None:
    """Read both weeks, and write the columns that the learning week has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="clone of the repository")
    parser.add_argument("directory", type=Path, help="is written")
    options = parser.parse_args()
    weeks = [tidy(options.source / place, series) for series, place in PLACES.items()]
    columns = ["series", *(column for column in weeks[0].columns if column != "series")]
    write_tidy(options.directory, pd.concat([week[columns] for week in weeks], ignore_index=True), SPLIT)


if __name__ == "__main__":
    run_command(main)
