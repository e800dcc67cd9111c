"""A trained bundle at work: rows in, labels out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from netanomaly.build import build_device, build_grid, build_input_format, build_model, build_spans
from netanomaly.bundle import Bundle, load_bundle
from netanomaly.config import Config, load_config
from netanomaly.data.batches import IGNORED, ChannelSegment
from netanomaly.data.channels import Channels
from netanomaly.data.grid import Grid, Segment
from netanomaly.data.ingest import NO_PART, Table, find_files, read_table, table_of_frames
from netanomaly.errors import BundleError, ConfigError, DataError
from netanomaly.training.engine import segment_logits

NO_DATA = "no_data"
"""The label of a row in which nothing was measured."""


@dataclass(frozen=True)
class Scores:
    """What the model says of each row of a table.

    Attributes:
        labels: a class name, or `no_data`. (rows,)
        confidence: probability of the label, 0 for `no_data`. (rows,)
        probabilities: (rows, classes); zeros for `no_data`.
    """

    labels: NDArray[np.object_]
    confidence: NDArray[np.float64]
    probabilities: NDArray[np.float64]


class Predictor:
    """Labels rows of metrics with a trained bundle.

    Attributes:
        config: the bundle's configuration.
        classes: class names in the order of the probabilities.
        facts: how the bundle came about.
    """

    def __init__(self, bundle: Bundle, device: torch.device) -> None:
        self.config = bundle.config
        self.classes = bundle.classes
        self.facts = bundle.facts
        self.device = device
        self._channels = bundle.channels
        self._model = build_model(bundle.config, bundle.channels.count, len(bundle.classes))
        try:
            self._model.load_state_dict(bundle.weights)
        except RuntimeError as error:
            raise BundleError(f"the weights do not fit the bundle's config: {' '.join(str(error).split())}") from error
        self._model.to(device).eval()

    def predict(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Label every row of a frame with the columns of the training data; a label column is not needed.

        Rows may come in any order and of any number of series. Earlier rows of a series are the context of later
        ones: give at least `facts["history_rows"]` of them before the first row that matters.

        Returns:
            One row per input row, same order and index: series, timestamp, label, confidence, and p_<class> for
            every class.

        Raises:
            DataError: the frame breaks the format, or no series has as many rows as one window.
        """
        form = build_input_format(self.config.data).without_label()
        result = self._predict(table_of_frames([(frame, NO_PART, "frame")], form))
        result.index = frame.index
        return result

    def predict_files(self, files: Sequence[str | PathLike[str]]) -> pd.DataFrame:
        """Label every row of CSV or Parquet files (paths or patterns), in order; see `predict`."""
        form = build_input_format(self.config.data).without_label()
        paths = find_files([str(file) for file in files], ".")
        return self._predict(read_table(dict.fromkeys(paths, NO_PART), form))

    def score(self, table: Table) -> Scores:
        """What the model says of each row of a table of validated rows."""
        grid = self.grid(table)
        self._check_length(table, grid)
        probabilities = grid.to_rows(self.probabilities(grid.segments))
        known = grid.to_rows([segment.valid for segment in grid.segments])  # type: ignore[misc]
        best = probabilities.argmax(axis=1)
        labels = np.where(known, np.array(self.classes, dtype=object)[best], NO_DATA)
        return Scores(labels, probabilities.max(axis=1), probabilities)

    def grid(self, table: Table) -> Grid:
        """The table on the bundle's grid."""
        return build_grid(self.config, table)

    def probabilities(self, segments: Sequence[Segment]) -> list[NDArray[np.float64]]:
        """Class probabilities of every step, (T, K) per segment; zeros where nothing was measured."""
        inputs = [channel_segment(segment, self._channels) for segment in segments]
        logits = segment_logits(self._model, inputs, self._model.history_rows, self.device)
        return [_softmax(rows) * part.valid[:, None] for rows, part in zip(logits, inputs, strict=True)]

    def _predict(self, table: Table) -> pd.DataFrame:
        scores = self.score(table)
        result = pd.DataFrame({"series": table.series, "timestamp": table.time_texts})
        result["label"] = scores.labels
        result["confidence"] = scores.confidence
        columns = [f"p_{name}" for name in self.classes]
        return pd.concat([result, pd.DataFrame(scores.probabilities, columns=columns)], axis=1)

    def _check_length(self, table: Table, grid: Grid) -> None:
        window, longest = build_spans(self.config).window, max(len(segment) for segment in grid.segments)
        if longest < window:
            raise DataError(
                f"{table.sources[0].name}: the longest stretch without a gap has {longest} rows, one window needs "
                f"{window}; give more rows of the same series before the ones that matter"
            )


def load(directory: str | PathLike[str], device: str | None = None, overrides: Iterable[str] = ()) -> Predictor:
    """The predictor of a bundle.

    Args:
        directory: of a training run.
        device: `cpu`, `cuda` or `auto`; default: as in the config. A bundle does not know where it was trained.
        overrides: `data.key=value` changes to how files are read (separator, columns, units ...).

    Raises:
        BundleError: there is no bundle, or it is damaged.
        ConfigError: an override changes more than how files are read.
    """
    bundle = load_bundle(Path(directory))
    config = _adapted(bundle.config, overrides)
    bundle = Bundle(config, bundle.channels, bundle.classes, bundle.weights, bundle.facts)
    return Predictor(bundle, build_device(device or config.device))


def channel_segment(segment: Segment, channels: Channels, targets: NDArray[np.int64] | None = None) -> ChannelSegment:
    """A segment as the model takes it; without `targets` there is nothing to learn from it."""
    if targets is None:
        targets = np.full(len(segment), IGNORED, dtype=np.int64)
    return ChannelSegment(channels(segment.values), segment.valid, targets)


def _adapted(config: Config, overrides: Iterable[str]) -> Config:
    """The bundle's config with other ways to read files; what the weights depend on has to stay."""
    changed = load_config(config, overrides)
    for path in ("channels", "model", "data.interval"):
        before, after = config, changed
        for key in path.split("."):
            before, after = getattr(before, key), getattr(after, key)
        if before != after:
            raise ConfigError(f"--set {path}: a trained bundle depends on it; train again to change it")
    if [m.name for m in config.data.metrics] != [m.name for m in changed.data.metrics]:
        raise ConfigError(
            "--set data.metrics: the bundle's metrics have to stay, in name and order; columns may change"
        )
    return changed


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    exact = logits.astype(np.float64)
    powers = np.exp(exact - exact.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
