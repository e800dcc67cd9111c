"""Bring the runs of a Cisco router lab (BGP cleared, ports flapped) into tidy form for the benchmark of quality.

    git clone https://github.com/anrputina/OutlierDenStream-BigDama18
    git -C OutlierDenStream-BigDama18 checkout 3fc2db8b
    python scripts/prepare_cisco_bgpclear.py OutlierDenStream-BigDama18 DIR/cisco_bgpclear

A file for each router and run, a row every four to six seconds, a column for each quantity of each interface. A tidy
row has sums and maxima over the interfaces, and of running totals what was counted since the row before. Some files
lack quantities: their metrics are missing there. An event of a run labels all of its routers, from its first second to
its last. Should the clone lack the events of `bgpclear_first`, those below are taken: the ones that
`2/bgpclear_ground_truth.txt` of cisco-ie/telemetry lists, which all of the data come from.

How metrics are made was inferred from the originals (pieces, as of commit 08180562) and from the tidy table behind the
benchmark's figures (made at 3fc2db8b). Compared with that table: labels, series and parts of all rows (equal), all
metrics in six rows of four files (equal), what is missing in seven files (equal). Not verified: a run on a whole clone;
the bound at which an interface is active (at 975 packets/s none is, at 1,148 all are); which total stands behind a
metric that is always 0 (errors, most drops); a total that falls, which counts as nothing here: none was seen.

Licence: CDLA-Permissive-1.0; the README of one set of cisco-ie/telemetry says CC BY-NC 4.0.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.bench.command import run_command
from scripts.bench.quality_tidy import write_tidy

LEAVES = tuple(f"leaf{n}" for n in (1, 2, 3, 5, 6, 7, 8))
"""There is no leaf4."""
NODES = (*LEAVES, *(f"spine{n}" for n in (1, 2, 3, 4)))
RUNS = {
    "bgpclear_first": NODES,
    "bgpclear_second": NODES,
    "portflap_first": NODES,
    "bgpclear_no_traffic_2hourRun": ("leaf1",),
}
LABELS = {"clearBGP": "bgp_clear", "portflap": "port_flap"}
EVENTS = {
    "bgpclear_first": """
Start,End,Event
1498754414,1498754597,clearBGP
1498754654,1498754843,clearBGP
1498754883,1498755073,clearBGP
1498755122,1498755304,clearBGP
1498755422,1498755635,clearBGP
1498755721,1498755944,clearBGP
1498756039,1498756234,clearBGP
"""
}
"""Of runs whose ground truth the clone lacks; events at several routers at once are one."""
PARTS = {
    "bgpclear_first": (",1498755680,train", "1498755680,,val"),
    "bgpclear_second": (",,test",),
    "portflap_first": (",1504286800,train", "1504286800,1504287200,val", "1504287200,,test"),
    "bgpclear_no_traffic_2hourRun": (",,train",),
}

ACTIVE_PPS = 1000
RATES = {
    "in_kbps": "input-data-rate",
    "out_kbps": "output-data-rate",
    "in_pps": "input-packet-rate",
    "out_pps": "output-packet-rate",
    "in_load_255": "input-load",
    "out_load_255": "output-load",
}
TOTALS = {
    "rx_bytes": "bytes-received",
    "tx_bytes": "bytes-sent",
    "rx_packets": "packets-received",
    "tx_packets": "packets-sent",
    "in_drops": "input-drops",
    "out_drops": "output-drops",
    "in_errors": "input-errors",
    "crc_errors": "crc-errors",
    "carrier_transitions": "carrier-transitions",
    "out_queue_drops": "output-queue-drops",
    "in_queue_drops": "input-queue-drops",
}
NODE_TOTALS = {
    "no_route_drops": "0/RP0/CPU0no-route-packets",
    "total_drops": "0/RP0/CPU0total-number-of-drop-packets",
    "punt_unreachable": "0/RP0/CPU0punt-unreachable-packets",
    "incomplete_adjacency": "0/RP0/CPU0incomplete-adjacency-packets",
    "unresolved_prefix_drops": "0/RP0/CPU0unresolved-prefix-packets",
    "bgp_inbound_updates": "performance-statistics__vrf__inbound-update-messages",
    "bgp_updates_received": "vrf__update-messages-received",
    "config_items": "performance-statistics__global__configuration-items-processed",
}
NODE_LEVELS = {
    "active_routes": "active-routes-count",
    "backup_routes": "backup-routes-count",
    "deleted_routes": "deleted-routes-count",
    "paths": "paths-count",
    "routes": "routes-counts",
    "bgp_established_neighbors": "global__established-neighbors-count-total",
    "bgp_neighbors": "global__neighbors-count-total",
    "bgp_nexthops": "global__nexthop-count",
    "vrf_neighbors": "vrf__neighbors-count",
    "vrf_networks": "vrf__network-count",
    "vrf_paths": "vrf__path-count",
}


def tidy(table: pd.DataFrame, events: pd.DataFrame, series: str) -> pd.DataFrame:
    """The file of one router and run, a row less: series, timestamp, metrics, label."""
    times = table["time"].astype(int)
    rows: dict[str, pd.Series] = {"timestamp": times}
    for metric, name in RATES.items():
        rates = interfaces(table, name)
        rows[f"{metric}_sum"] = rates.sum(axis=1, min_count=1)
        rows[f"{metric}_max"] = rates.max(axis=1)
    out = interfaces(table, RATES["out_pps"])
    rows["active_interfaces"] = (out > ACTIVE_PPS).sum(axis=1).where(out.notna().any(axis=1))
    rows["out_pps_change_max"] = out.diff().max(axis=1)
    rows["out_pps_change_min"] = out.diff().min(axis=1)
    for metric, name in TOTALS.items():
        rows[f"{metric}_delta_sum"] = counted(interfaces(table, name)).sum(axis=1, min_count=1)
    of_node = table.reindex(columns=[*NODE_TOTALS.values(), *NODE_LEVELS.values()]).astype(float)
    deltas = counted(of_node)
    rows |= {f"{metric}_delta": deltas[name] for metric, name in NODE_TOTALS.items()}
    rows |= {metric: of_node[name] for metric, name in NODE_LEVELS.items()}
    frame = pd.DataFrame(rows).astype({metric: float for metric in rows if metric != "timestamp"})
    frame.insert(0, "series", series)
    frame["label"] = "normal"
    for start, end, kind in zip(events["Start"], events["End"], events["Event"], strict=True):
        frame.loc[(times >= start) & (times <= end), "label"] = LABELS[kind]
    return frame.iloc[1:]


def interfaces(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The columns of one quantity, an interface each: `HundredGigE0/0/0/12` and the name; none if the file lacks it."""
    return table.filter(regex=rf"^[A-Za-z]+[\d/]+{name}$").astype(float)


def counted(totals: pd.DataFrame) -> pd.DataFrame:
    """What was counted since the row before; nothing where a total falls."""
    return totals.diff().clip(lower=0)


def read_events(clone: Path, run: str) -> pd.DataFrame:
    """When each event of a run starts and ends, and its kind."""
    path = clone / "GrounTruth" / f"{run}.txt"  # its spelling
    return pd.read_csv(path if path.exists() or run not in EVENTS else io.StringIO(EVENTS[run]))


def main() -> None:
    """Read every file, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="clone of the repository")
    parser.add_argument("directory", type=Path, help="is written")
    options = parser.parse_args()
    pieces, split = [], []
    for run, nodes in RUNS.items():
        events = read_events(options.source, run)
        for node in nodes:
            table = pd.read_csv(options.source / "Data" / "DatasetByNodes" / f"{node}{run}.csv", low_memory=False)
            pieces.append(tidy(table, events, f"{run}__{node}"))
            split += [f"{run}__{node},{part}" for part in PARTS[run]]
    write_tidy(options.directory, pd.concat(pieces, ignore_index=True), "\n".join(split))


if __name__ == "__main__":
    run_command(main)
