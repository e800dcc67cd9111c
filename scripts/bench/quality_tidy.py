"""Writing a public data set in tidy form: data.csv.gz and split.csv."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd


def write_tidy(directory: Path, frame: pd.DataFrame, split: str) -> None:
    """Write rows (series, timestamp, metrics, label) and the table of parts that goes with them.

    Args:
        split: lines of series,t_start,t_end,split; empty bounds are open.
    """
    directory.mkdir(parents=True, exist_ok=True)
    frame.to_csv(directory / "data.csv.gz", index=False, compression={"method": "gzip", "mtime": 0})
    (directory / "split.csv").write_text(f"series,t_start,t_end,split\n{split.strip()}\n", encoding="utf-8")
    labelled = frame.loc[frame["label"] != "", "label"].value_counts().to_dict()
    print(f"{directory}: {len(frame)} rows of {frame['series'].nunique()} series, labelled {labelled}")


def snake_case(name: str) -> str:
    """`ifInOctets` as `if_in_octets`, `TR-01+link-a` as `tr_01_link_a`."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z][A-Za-z]*[a-z])", "_", name) if name.isalnum() else name
    return re.sub(r"[^a-z0-9]+", "_", apart.lower()).strip("_")
