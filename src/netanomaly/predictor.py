"""A trained bundle at work: rows in, labels out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from netanomaly.alarms.live import LiveAlarms
from netanomaly.alarms.raising import AlarmCollector
from netanomaly.build import build_device, build_grid, build_grid_spans, build_input_format, build_spans, threads
from netanomaly.build_members import build_model
from netanomaly.bundle import Bundle, load_bundle
from netanomaly.config import Config
from netanomaly.data.batches import IGNORED, ChannelSegment, channel_segment
from netanomaly.data.channels import Channels
from netanomaly.data.grid import Grid, Segment
from netanomaly.data.ingest import NO_DATA, NO_PART, UNKNOWN, Table, find_files, read_table, table_of_frames
from netanomaly.errors import BundleError, DataError
from netanomaly.incident_files import incident_table
from netanomaly.reason import Reason
from netanomaly.reason_rows import onset, row_at
from netanomaly.reasons import AskedIncident, Explainer
from netanomaly.rows_written import with_rows_written
from netanomaly.starter import is_starter, starter_directory
from netanomaly.training.engine import segment_logits
from netanomaly.unknown import KnownRows

MOST_NOVEL = 9.0
"""Novelty of rows that are stranger still: how much so says nothing more."""


class Predictor:
    """Labels rows of metrics with a trained bundle.

    Attributes:
        config: the configuration in use: the bundle's, but for how rows are written, how and where it computes.
        trained_config: the bundle's.
        classes: class names in the order of the probabilities.
        decisions: how logits become probabilities, and rows become alarms.
        facts: how the bundle came about.
        channels: what the model sees of a row, as fitted in training.
        known: what training has seen of the metrics that these rows have; None: no row is `unknown`.
        model: the classifier, ready to score.
    """

    def __init__(self, bundle: Bundle, device: torch.device, config: Config | None = None) -> None:
        self.config = config or bundle.config
        self.trained_config = bundle.config
        self.classes = bundle.classes
        self.decisions = bundle.decisions
        self.facts = bundle.facts
        self.device = device
        self.channels = bundle.channels
        self.known = _of_measured(bundle.decisions.known, self.config, bundle.channels)
        try:
            with torch.random.fork_rng(devices=[]):  # fresh weights are drawn first: leave the caller's draws alone
                self.model = build_model(self.config, bundle.channels.count, len(bundle.classes))
            self.model.load_state_dict(bundle.weights)
        except (RuntimeError, ValueError) as error:
            raise BundleError(f"the weights do not fit the bundle's config: {' '.join(str(error).split())}") from error
        self.model.to(device).eval()

    def predict(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Label every row of a frame with the columns of the training data; a label column is not needed.

        Rows may come in any order and of any number of series. Earlier rows of a series are the context of later
        ones: give at least `facts["history_rows"]` of them before the first row that matters.

        Returns:
            One row per input row, same order and index: series, timestamp, label, confidence, p_<class> for every
            class, and novelty. A row in which nothing was measured is `no_data`, with zeros; one with a novelty above
            1 is `unknown`: like none of training.

        Raises:
            DataError: the frame breaks the format, or no series has as many rows as one window.
        """
        form = build_input_format(self.config.data).without_label()
        result = self._predict(table_of_frames([(frame, NO_PART, "frame")], form))
        result.index = frame.index
        return result

    def predict_files(self, files: str | PathLike[str] | Sequence[str | PathLike[str]]) -> pd.DataFrame:
        """Label every row of CSV or Parquet files (paths or patterns, one or several), in order; see `predict`."""
        files = [files] if isinstance(files, (str, PathLike)) else files
        return self._predict(self.read([str(file) for file in files]))

    def read(self, files: Sequence[str]) -> Table:
        """The rows of CSV or Parquet files (paths or patterns), in order."""
        form = build_input_format(self.config.data).without_label()
        return read_table(dict.fromkeys(find_files(files, "."), NO_PART), form)

    def incidents(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The incidents in a frame with the columns of the training data, a line each: see `incident_table`.

        Raises:
            DataError: as of `predict`.
        """
        form = build_input_format(self.config.data).without_label()
        table, collector = table_of_frames([(frame, NO_PART, "frame")], form), self.collector()
        answers = self.answer(table)
        collector.add(table.series, table.times, answers[:, :-1], answers[:, -1])
        return incident_table(collector.alarms(), form.times, collector.interval_ns)

    def live_alarms(self) -> LiveAlarms:
        """What makes alarms of rows as they come, as the bundle decides."""
        return LiveAlarms(self.decisions.alarms, self.classes, build_grid_spans(self.config).interval_ns)

    def collector(self) -> AlarmCollector:
        """What makes alarms of rows and their probabilities, as the bundle decides."""
        return AlarmCollector(self.decisions.alarms, self.classes, build_grid_spans(self.config).interval_ns)

    def explain(self, frame: pd.DataFrame, series: str, at: object) -> Reason:
        """Why the row of a series at a time, or the last one before it, gets its label; see docs/reasons.md.

        Args:
            frame: rows as for `predict`.
            at: a time as the frame has them, or a datetime.

        Raises:
            DataError: as `predict`; or there is no such row, or nothing was measured in it.
        """
        form = build_input_format(self.config.data).without_label()
        return self._explain(table_of_frames([(frame, NO_PART, "frame")], form), series, at)

    def explain_files(self, files: Sequence[str | PathLike[str]], series: str, at: object) -> Reason:
        """Why a row of CSV or Parquet files gets its label; see `explain`."""
        return self._explain(self.read([str(file) for file in files]), series, at)

    def reasons(self, segments: Sequence[Segment], table: Table, asked: Sequence[AskedIncident]) -> list[Reason]:
        """The reason of each incident, in order, whose rows lie in segments of the table; see `Explainer.reasons`."""
        with threads(self.config):
            return self.explainer.reasons(segments, table, asked)

    @property
    def explainer(self) -> Explainer:
        """What finds the reasons of this model's answers."""
        form, normal = build_input_format(self.config.data), self.config.data.normal
        names, calibration = self.classes, self.decisions.calibration
        return Explainer(self.model, self.channels, form.metrics, names, normal, self.device, calibration, form.times)

    def grid(self, table: Table) -> Grid:
        """The table on the bundle's grid. Raises DataError if no stretch has as many rows as one window."""
        grid = build_grid(self.config, table)
        window, longest = build_spans(self.config).window, max(len(segment) for segment in grid.segments)
        if longest < window:
            raise DataError(
                f"{table.origins[0].name}: the longest stretch without a gap has {longest} rows, one window needs "
                f"{window}; give more rows of the same series before the ones that matter"
            )
        return grid

    def probabilities(
        self, segments: Sequence[Segment], wanted: Sequence[NDArray[np.bool_]] | None = None
    ) -> list[NDArray[np.float64]]:
        """Class probabilities of the wanted steps (default: all), (T, K) per segment.

        Zeros where nothing was measured, and where it was not asked for.
        """
        return [rows[:, :-1] for rows in self.answers(segments, wanted)]

    def answers(
        self, segments: Sequence[Segment], wanted: Sequence[NDArray[np.bool_]] | None = None
    ) -> list[NDArray[np.float64]]:
        """The same with a column more, how unlike training the row is: novelty, above 1 for `unknown`. (T, K + 1)"""
        masks = wanted if wanted is not None else [np.ones(len(segment), dtype=bool) for segment in segments]
        asked = [index for index, mask in enumerate(masks) if mask.any()]
        inputs = [
            channel_segment(segments[index], self.channels, np.where(masks[index], 0, IGNORED)) for index in asked
        ]
        result = [np.zeros((len(segment), len(self.classes) + 1)) for segment in segments]
        for index, rows in zip(asked, self.score(inputs), strict=True):
            result[index] = rows
        return result

    def score(self, inputs: Sequence[ChannelSegment]) -> list[NDArray[np.float64]]:
        """Class probabilities and novelty of the steps that have a target, (T, K + 1) per segment; zeros elsewhere."""
        with threads(self.config):
            logits = segment_logits(self.model, inputs, len(self.classes), self.model.history_rows, self.device)
        asked = [(given.targets != IGNORED)[:, None] for given in inputs]
        strange = [self.novelty(given.channels, given.valid)[:, None] for given in inputs]
        triples = zip(logits, strange, asked, strict=True)
        return [np.concatenate([self.calibrated(rows), novelty], axis=1) * mask for rows, novelty, mask in triples]

    def novelty(self, channels: NDArray[np.float32], valid: NDArray[np.bool_]) -> NDArray[np.float64]:
        """How unlike training each row of a segment is, above 1 for `unknown`, 9 at most. (T, C), (T,) to (T,)"""
        if self.known is None:
            return np.zeros(len(valid))
        return np.minimum(self.known.score(channels, valid) / self.known.limit, MOST_NOVEL)

    def newest_novelty(self, channels: NDArray[np.float32], valid: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for the newest row of n series, from the rows that the encoder joins. (n, S, C), (n, S) to (n,)"""
        if self.known is None:
            return np.zeros(len(valid))
        return np.minimum(self.known.newest(channels, valid) / self.known.limit, MOST_NOVEL)

    def calibrated(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Calibrated probabilities of the model's logits, (rows, K) to (rows, K).

        Raises:
            BundleError: a logit is no finite number.
        """
        if not np.isfinite(logits).all():
            raise BundleError(
                "the model's answer to a row is no finite number: its weights are damaged, or they weigh by a plain "
                "exp(score) that has no bound (normalise: none)"
            )
        return self.decisions.calibration.probabilities(logits)

    def labelled(self, table: Table, answers: NDArray[np.float64]) -> pd.DataFrame:
        """The answer to each row of a table, from its class probabilities and novelty (rows, K + 1); see `predict`."""
        probabilities = answers[:, :-1]
        named = self.decisions.calibration.named(probabilities)
        known = pd.DataFrame(
            {
                "series": table.series,
                "timestamp": table.time_texts,
                "label": self.named(answers),
                "confidence": probabilities[np.arange(len(named)), named],
            }
        )
        columns = [f"p_{name}" for name in self.classes]
        return pd.concat([known, pd.DataFrame(answers, columns=[*columns, "novelty"])], axis=1)

    def named(self, answers: NDArray[np.float64]) -> NDArray[np.object_]:
        """The label of each row of answers, (rows, K + 1) to (rows,): `unknown` with a novelty above 1, else `name`."""
        return np.where(answers[:, -1] > 1, UNKNOWN, self.name(answers[:, :-1]))

    def name(self, probabilities: NDArray[np.float64]) -> NDArray[np.object_]:
        """The class of each row of probabilities, (rows, K) to (rows,): `no_data` where all are zero."""
        best = np.array(self.classes, dtype=object)[self.decisions.calibration.named(probabilities)]
        return np.where(probabilities.any(axis=1), best, NO_DATA)

    def _predict(self, table: Table) -> pd.DataFrame:
        return self.labelled(table, self.answer(table))

    def answer(self, table: Table) -> NDArray[np.float64]:
        """Class probabilities and novelty of all rows of a table, (rows, K + 1). Raises DataError as of `grid`."""
        grid = self.grid(table)
        return grid.to_rows(self.answers(grid.segments))

    def _explain(self, table: Table, series: str, at: object) -> Reason:
        grid, form = self.grid(table), build_input_format(self.config.data)
        row = row_at(table, form, series, at, build_spans(self.config).interval_ns)
        segment, step = grid.segments[grid.row_segment[row]], int(grid.row_step[row])
        labels = self.name(self.probabilities([segment])[0])
        if labels[step] == NO_DATA:
            raise DataError(f"{table.where(row)}: nothing was measured in this row, so there is nothing to explain")
        asked = AskedIncident(0, onset(labels, step, self.config.data.normal), step, labels[step])
        return self.reasons([segment], table, [asked])[0]


def _of_measured(known: KnownRows | None, config: Config, channels: Channels) -> KnownRows | None:
    """What is known of the channels of metrics that the rows have; None if no row can be unknown."""
    if known is None or known.limit == np.inf:
        return None
    absent = [not metric.measured for metric in config.data.metrics]
    if not any(absent):
        return known
    silent = np.flatnonzero(np.tile(absent, channels.count // len(absent)))  # groups of one channel of every metric
    return known.without(silent.tolist())


def load(directory: str | PathLike[str], device: str | None = None, overrides: Iterable[str] = ()) -> Predictor:
    """The predictor of a bundle.

    Args:
        directory: of a training run, or `starter` for the bundle that comes with the package.
        device: `cpu`, `cuda` or `auto`; default: as in the config. A bundle does not know where it was trained.
        overrides: `data.key=value` changes to how rows are written (separator, columns, units ...); `CHANGEABLE`
            lists the keys.

    Raises:
        BundleError: there is no bundle, or it is damaged.
        ConfigError: an override changes what the weights depend on, or the device is not there.
    """
    place = Path(directory)
    bundle = load_bundle(starter_directory() if is_starter(place) else place)
    config = with_rows_written(bundle.config, overrides)
    return Predictor(bundle, build_device(device or config.device), config)
