"""Bring the SNMP-MIB data set (34 variables under floods and brute force) into tidy form for the benchmark of quality.

    git clone https://github.com/purppsyrup/snmp-anomaly-ds
    python scripts/prepare_snmp_mib.py snmp-anomaly-ds/filkom/all_data.csv DIR/snmp_mib

The file holds running totals, sessions one after the other without times; a session has one class. A tidy row holds
what was counted since the row before, at a nominal 15 seconds. A total that falls has wrapped at 32 bits if it was in
the upper half of their range, else the count is missing. The repository states no licence.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.bench.command import run_command
from scripts.bench.quality_tidy import snake_case, write_tidy

STEP_S = 15
SESSIONS = {
    "normal": (300, 300),
    "icmp-echo": (240, 300, 92),
    "tcp-syn": (120, 360, 240, 240),
    "udp-flood": (300, 233, 240),
    "httpFlood": (300, 250, 23),
    "slowloris": (240, 300, 240),
    "slowpost": (240, 240),
    "bruteForce": (200,),
}
"""Rows of the sessions of each class, in the order of the file."""
LABELS = {
    "icmp-echo": "icmp_flood",
    "tcp-syn": "syn_flood",
    "udp-flood": "udp_flood",
    "httpFlood": "http_flood",
    "bruteForce": "brute_force",
}
GAUGES = ("tcpCurrEstab",)
SPLIT = """
bruteForce_s1,,1641,train
bruteForce_s1,1641,2089,val
bruteForce_s1,2089,,test
httpFlood_s2,,,test
httpFlood_s1,,3588,train
httpFlood_s1,3588,,val
httpFlood_s3,,,val
icmp-echo_s3,,,test
icmp-echo_s1,,,train
icmp-echo_s2,,,val
normal_s2,,,test
normal_s1,,3588,train
normal_s1,3588,,val
slowloris_s3,,,test
slowloris_s1,,,train
slowloris_s2,,,val
slowpost_s2,,,test
slowpost_s1,,2868,train
slowpost_s1,2868,,val
tcp-syn_s4,,,test
tcp-syn_s1,,,train
tcp-syn_s2,,,train
tcp-syn_s3,,,val
udp-flood_s3,,,test
udp-flood_s1,,,train
udp-flood_s2,,,val
"""


def tidy(totals: pd.DataFrame, name: str, label: str) -> pd.DataFrame:
    """The totals of one session as counts, a row less: series, timestamp, metrics, label."""
    rows = {}
    for column in totals.columns:
        values, metric = totals[column].astype(float), snake_case(column.removesuffix("11"))
        if column in GAUGES:
            rows[f"{metric}_count"] = totals[column].iloc[1:]
        else:
            rows[f"{metric}_delta"] = counted(values).iloc[1:]
    frame = pd.DataFrame(rows)
    frame.insert(0, "series", name)
    frame.insert(1, "timestamp", STEP_S * np.arange(1, len(frame) + 1))
    return frame.assign(label=label)


def counted(totals: pd.Series[float]) -> pd.Series[float]:
    """What was counted between running totals of 32 bits; missing where one falls that cannot have wrapped."""
    found = totals.diff()
    wrapped = (found < 0) & (totals.shift() >= 2**31)
    return found.mask(wrapped, found + 2**32).mask((found < 0) & ~wrapped)


def main() -> None:
    """Read the file, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="all_data.csv")
    parser.add_argument("directory", type=Path, help="is written")
    options = parser.parse_args()
    read = pd.read_csv(options.source)
    pieces = []
    for name, lengths in SESSIONS.items():
        rows = read[read["class"] == name].drop(columns="class")
        if len(rows) != sum(lengths):
            sys.exit(f"{options.source}: {len(rows)} rows of class '{name}', expected {sum(lengths)}: another version?")
        bounds = np.cumsum([0, *lengths])
        for number in range(len(lengths)):
            session = rows.iloc[bounds[number] : bounds[number + 1]]
            pieces.append(tidy(session, f"{name}_s{number + 1}", LABELS.get(name, name)))
    write_tidy(options.directory, pd.concat(pieces, ignore_index=True), SPLIT)


if __name__ == "__main__":
    run_command(main)
