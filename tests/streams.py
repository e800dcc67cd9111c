"""Rows as they come: times that are hard to place, and a network with all that goes wrong in one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st

from netanomaly import Predictor
from netanomaly.build import build_input_format
from netanomaly.build_members import build_model
from netanomaly.bundle import Bundle
from netanomaly.config import parse_config
from netanomaly.data.channels import Channels
from netanomaly.data.grid import Grid
from netanomaly.data.ingest import NO_PART, UNLABELLED, InputFormat, Origin, Table, table_of_frames
from netanomaly.data.schema import Kind, Metric
from netanomaly.decisions import Decisions
from netanomaly.streaming import StreamingPredictor
from networks import CLASSES, METRICS, link, settings

WINDOW = 8
MAX_GAP = 5
METRIC_KINDS: dict[str, Kind] = {"m0": "gauge", "m1": "counter", "m2": "gauge"}
MODELS: dict[str, dict[str, Any]] = {
    "plain": {},
    "several members, no row layer": {"members": 2, "stem": 4, "row_layer": False, "short_windows": 3},
    "mean": {"read_out": "mean"},
    "memory of blocks": {"sequence_model": {"n_heads": 2, "depth": 2, "memory": "blocks"}},
    "rotary, grouped, local": {
        "sequence_model": {"n_heads": 4, "n_kv_heads": 2, "depth": 2, "local": 5, "positions": {"kind": "rotary"}}
    },
    "cls, relative keys": {
        "read_out": "cls",
        "sequence_model": {"n_heads": 2, "depth": 2, "positions": {"kind": "relative_key", "reach": 3}},
    },
    "shared weights, T5": {
        "sequence_model": {
            "n_heads": 2,
            "depth": 3,
            "share_weights": True,
            "positions": {"kind": "relative_bias", "buckets": 4, "furthest": 6},
        }
    },
    "patches, on input": {
        "read_out": "attention",
        "sequence_model": {"n_heads": 2, "patch": 2, "positions": {"kind": "sinusoidal", "add_to": "input"}},
    },
    "no convolution": {"stem": 1, "window": 4},
    "long convolution": {"stem": 12, "window": 4},
}


@st.composite
def times_near_halves(draw: st.DrawFn, interval: int, most: int = 40) -> np.ndarray:
    """Sorted times: jitter, drift around half an interval, shared steps, equal times, short and long gaps."""
    half = interval // 2
    around = st.sampled_from([0, 1, -1, half, half + 1, half - 1, -half, -half - 1, interval // 3])
    jump = st.builds(
        lambda steps, off: max(0, steps * interval + off), st.sampled_from([0, 0, 1, 1, 1, 2, 4, 9]), around
    )
    start = draw(st.integers(-(10**17), 10**17))
    apart = draw(st.lists(jump, max_size=most - 1))
    return np.cumsum(np.array([start, *apart], dtype=np.int64))


def metrics_table(times: np.ndarray, seed: int = 0) -> Table:
    """A series of these times, nanoseconds, with a gauge, a counter that is reset, and a gauge; many are missing.

    All values are quarters, so that sums do not depend on their order.
    """
    rng, rows = np.random.default_rng(seed), len(times)
    total = np.cumsum(rng.integers(0, 50, rows)) % 120
    values = np.stack([rng.integers(-40, 40, rows), total, rng.integers(0, 9, rows)], axis=1) / 4
    values[rng.random(values.shape) < 0.2] = np.nan
    values[rng.random(rows) < 0.1] = np.nan
    return Table(
        metrics=tuple(Metric(name, name, kind=kind) for name, kind in METRIC_KINDS.items()),
        series=np.full(rows, "a", dtype=object),
        times=np.asarray(times, dtype=np.int64),
        time_texts=np.array([str(time) for time in times], dtype=object),
        values=values,
        labels=np.full(rows, UNLABELLED, dtype=object),
        parts=np.full(rows, NO_PART, dtype=np.int8),
        origins=(Origin("rows", rows, lambda row: f"rows: line {row + 2}"),),
    )


def bundle(
    *, duplicates: str = "error", counter: bool = True, kinds: Sequence[str] | None = None, **model: Any
) -> Bundle:
    """An untrained one whose answers differ from row to row: the weights of its head are large."""
    torch.manual_seed(0)
    data: dict[str, Any] = {"duplicates": duplicates, "max_gap": MAX_GAP}
    if counter:
        data["metrics"] = [
            {"name": "rtt_ms", "unit": "ms"},
            {"name": "throughput_bps", "unit": "bit/s", "kind": "counter"},
            {"name": "loss_ratio", "unit": "ratio"},
        ]
    seen: dict[str, Any] = {"baselines": [5, 12]} if kinds is None else {"baselines": [5, 12], "kinds": list(kinds)}
    config = parse_config(settings(Path("nowhere"), data=data, model=model, channels=seen))
    values = link("f")[list(METRICS)].to_numpy(dtype=np.float64)
    channels = Channels.fit([values], [np.full(len(values), True)], config.channels.kinds, (5, 12))
    weights = build_model(config, channels.count, len(CLASSES)).state_dict()
    for name in [name for name in weights if name.endswith("head.weight")]:
        weights[name] = weights[name] * 30
    return Bundle(config, channels, CLASSES, weights, Decisions.plain(CLASSES, CLASSES[0]), {})


def predictor(**changes: Any) -> Predictor:
    """Of such a bundle, on the CPU."""
    return Predictor(bundle(**changes), torch.device("cpu"))


def hard_network(rows: int = 100, *, seed: int = 0, shared: bool = False) -> pd.DataFrame:
    """Four interleaved links in order of time, their throughput as a counter, without labels.

    They drift and jitter, come late and go early, with short gaps that are masked and long ones that are not; the
    counters are reset, cells are missing, and so are all cells of some rows. With `shared`, some steps have several
    rows, some of them at the same time.
    """
    rng = np.random.default_rng(seed)
    links = []
    for number, name in enumerate("wxyz"):
        frame = link(name, rows, seed=seed).drop(columns="label")
        frame["throughput_bps"] = frame["throughput_bps"].fillna(1e6).cumsum()
        for reset in (rows // 3, rows // 2):
            frame.loc[reset:, "throughput_bps"] -= frame["throughput_bps"].iloc[reset] - 1000
        frame.loc[rng.random(rows) < 0.05, "throughput_bps"] = np.nan
        frame.loc[rng.random(rows) < 0.04, list(METRICS)] = np.nan
        drift = (0.9, 1.0, 1.1, 1.2)[number] * np.arange(rows) + rng.uniform(0, 0.2, rows)
        frame["seconds"] = number * 6 + np.round(drift, 3)
        gone = np.r_[20:22, 40 : 40 + MAX_GAP, 60 : 60 + MAX_GAP + 1, 70:90] + 2 * number
        frame = frame.drop(index=gone[gone < rows])
        if shared:
            again = frame[rng.random(len(frame)) < 0.15].copy()
            again["seconds"] += rng.choice([0.0, 0.1, 0.3], len(again))
            again[["rtt_ms", "throughput_bps"]] *= 1.25
            frame = pd.concat([frame, again, again.iloc[::2].assign(loss_ratio=0.5)])
        links.append(frame)
    result = pd.concat(links).sort_values("seconds", kind="stable", ignore_index=True)
    moments = pd.Timestamp("2026-03-01T00:00:00Z") + pd.to_timedelta(result.pop("seconds"), unit="s")
    result["timestamp"] = [moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") for moment in moments]
    return result


def form_of(trained: Predictor) -> InputFormat:
    """How rows to label are written."""
    return build_input_format(trained.config.data).without_label()


def tables(trained: Predictor, frame: pd.DataFrame, rows: int) -> list[Table]:
    """The frame cut into tables of so many rows."""
    pieces = [frame.iloc[first : first + rows] for first in range(0, len(frame), rows)]
    return [table_of_frames([(piece, NO_PART, "frame")], form_of(trained)) for piece in pieces]


def grid_of(trained: Predictor, frame: pd.DataFrame) -> Grid:
    """Where the rows of the frame lie."""
    return trained.grid(table_of_frames([(frame, NO_PART, "frame")], form_of(trained)))


def same_answers(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    """Row for row the same labels, and probabilities to 1e-5."""
    assert list(found) == list(wanted)
    for column in ("series", "timestamp", "label"):
        assert found[column].tolist() == wanted[column].tolist()
    numbers = [column for column in wanted if column == "confidence" or column.startswith("p_")]
    np.testing.assert_allclose(found[numbers].to_numpy(), wanted[numbers].to_numpy(), rtol=0, atol=1e-5)


def parts(frame: pd.DataFrame, cuts: Sequence[int]) -> Iterator[pd.DataFrame]:
    """The frame cut before these rows."""
    bounds = [0, *sorted({cut for cut in cuts if 0 < cut < len(frame)}), len(frame)]
    return (frame.iloc[first:stop] for first, stop in pairwise(bounds))


def streamed(stream: StreamingPredictor, frame: pd.DataFrame, rows: int) -> pd.DataFrame:
    """The answers to so many rows at a time."""
    return pd.concat([stream.update(part) for part in parts(frame, range(0, len(frame), rows))])


def content(stream: StreamingPredictor) -> dict[str, np.ndarray]:
    """All that is kept, copied."""
    return stream._memory.content()[0]


def unchanged(stream: StreamingPredictor, before: dict[str, np.ndarray]) -> None:
    """The series that were there are as they were."""
    for name, array in content(stream).items():
        np.testing.assert_array_equal(array[: len(before[name])], before[name])


def answers(printed: str | Sequence[str]) -> pd.DataFrame:
    """JSON lines as a frame."""
    given = printed.splitlines() if isinstance(printed, str) else printed
    return pd.DataFrame([json.loads(line) for line in given])


def same_printed(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    """The answers are the same; printed rows have no index."""
    same_answers(found.reset_index(drop=True), wanted.reset_index(drop=True))
