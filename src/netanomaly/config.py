"""The configuration: one frozen tree, checked as a whole, every key documented by its comment.

Classes outside this file take plain arguments; the code that builds them reads the tree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from netanomaly.config_errors import explain
from netanomaly.config_fields import AutoSpanField, Listed, Section
from netanomaly.config_model import ModelConfig
from netanomaly.config_tracking import TrackingConfig
from netanomaly.data.channels import LEVELS
from netanomaly.data.schema import UNITS, Kind
from netanomaly.durations import check_gap, parse_duration
from netanomaly.errors import ConfigError
from netanomaly.yaml_reader import apply_overrides, dump_yaml, read_yaml


def _check_unit(unit: str) -> str:
    if unit not in UNITS:
        raise ValueError(f"unknown unit '{unit}'; known: {', '.join(UNITS)}")
    return unit


def _check_duration(text: str) -> str:
    parse_duration(text)
    return text


def _check_boundary(boundary: float | str) -> float | str:
    if isinstance(boundary, (int, float)) and not 0 < boundary < 1:
        raise ValueError(f"{boundary} is not a share between 0 and 1; for a moment write a timestamp")
    return boundary


def _tab(value: Any) -> Any:
    return "\t" if value == "\\t" else value  # as a shell passes it on


def _metric_shorthand(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


Duration = Annotated[str, AfterValidator(_check_duration)]
Names = Annotated[tuple[str, ...], Listed]
SomeNames = Annotated[tuple[str, ...], Field(min_length=1), Listed]
Share = Annotated[float, Field(gt=0, lt=1)]
Boundary = Annotated[float | str, AfterValidator(_check_boundary)]


class MetricConfig(Section):
    """A metric; a plain string in the YAML is shorthand for its name."""

    name: str = Field(min_length=1)  # in the header too, unless `column` says otherwise; may be a pattern like tx_*
    column: str | None = None  # header of the source column
    unit: Annotated[str, AfterValidator(_check_unit)] = "1"  # as in the file; converted to the base unit
    kind: Kind = "gauge"  # counter: a running total, becomes a rate per second
    query: str | None = Field(default=None, min_length=1)  # PromQL, for rows from Prometheus
    measured: bool = True  # false: these files do not have it; it counts as missing in every row


class TimestampConfig(Section):
    """How the time of a row is written."""

    column: SomeNames = ("timestamp",)  # several columns are joined with a space: [Date, Time]
    format: str = "rfc3339"  # rfc3339, epoch, elapsed (a count from any start), or a pattern like "%d/%m/%Y %H:%M"
    unit: Literal["s", "ms", "us", "ns"] | None = None  # of epoch and elapsed
    timezone: str | None = None  # IANA name or UTC, for times written without an offset
    mixed_offsets: Literal["error", "utc"] = "error"  # utc: several offsets in one file are fine (summer time)

    @model_validator(mode="after")
    def _unit_fits_format(self) -> Self:
        counted = self.format in ("epoch", "elapsed")
        if counted and self.unit is None:
            raise ValueError(f"format {self.format} needs a unit: s, ms, us or ns")
        if not counted and self.unit is not None:
            raise ValueError(f"unit is for the formats epoch and elapsed, not for {self.format}")
        if not counted and self.format != "rfc3339" and "%" not in self.format:
            raise ValueError(f"unknown format '{self.format}'; use rfc3339, epoch, elapsed or a pattern like %Y-%m-%d")
        if "%" in self.format and not (set("Yy") & set(self.format) and set("dj") & set(self.format)):
            raise ValueError(f"the pattern '{self.format}' has no date; join the columns: column: [Date, Time]")
        return self


class SplitBySeries(Section):
    """Whole series for training, validation and test: how well it works on links it has not seen."""

    by: Literal["series"] = "series"
    train: SomeNames | None = None  # default: every series not named below
    validation: Share | SomeNames = 0.2  # names, or a share of the series drawn with the seed
    test: Share | Names = 0.2


class SplitByTime(Section):
    """Earlier rows train, later rows test."""

    by: Literal["time"]
    validation: Boundary = 0.15  # first moment of validation, or the share of rows before the test part
    test: Boundary = 0.2  # first moment of the test part, or the share of rows at the end
    purge: int | None = Field(default=None, ge=0)  # rows left out at a boundary; default: the model's whole history


class SplitByTable(Section):
    """A CSV with series, t_start, t_end, split (train, val or validation, test); empty bounds are open."""

    by: Literal["table"]
    path: str
    purge: int | None = Field(default=None, ge=0)


class SplitByFile(Section):
    """Separate files for each part; `data.files` stays empty."""

    by: Literal["file"]
    train: SomeNames
    validation: SomeNames
    test: Names = ()


Split = Annotated[SplitBySeries | SplitByTime | SplitByTable | SplitByFile, Field(discriminator="by")]


class DataConfig(Section):
    """Where the rows are and how to read them."""

    root: str = "."  # relative paths start here
    files: Names = ()  # paths or patterns
    separator: Annotated[str, Field(min_length=1, max_length=1), BeforeValidator(_tab)] = ","  # of all CSV files here
    decimal: Literal[".", ","] = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ("", "NaN", "nan")  # cells that mean "not measured"
    bad_lines: Literal["error", "skip"] = "error"  # lines with another number of fields; skipped ones are counted
    timestamp: TimestampConfig = TimestampConfig()
    series: Names = ()  # columns that name the series; none: every file is one series
    metrics: tuple[Annotated[MetricConfig, BeforeValidator(_metric_shorthand)], ...] = Field(min_length=1)
    label: str | None = None  # column with the state of the row; empty cells are unlabelled
    incidents: str | None = None  # CSV with the series columns, start, end, label: instead of a label column
    normal: str = "normal"  # the label of rows outside all incidents
    interval: Duration | None = None  # time between rows
    max_gap: Annotated[int | str, AfterValidator(check_gap)] = 10  # a longer silence starts a new segment
    duplicates: Literal["error", "last", "mean"] = "error"  # several rows of one series in one interval
    split: Split = SplitBySeries()

    @model_validator(mode="after")
    def _one_source_each(self) -> Self:
        if self.label is not None and self.incidents is not None:
            raise ValueError("give label or incidents, not both")
        if not any(metric.measured for metric in self.metrics):
            raise ValueError("no metric is measured")
        if self.separator == self.decimal:
            raise ValueError(f"separator and decimal are both '{self.decimal}'")
        if isinstance(self.split, SplitByFile) and self.files:
            raise ValueError(
                "with split.by: file the files stand in split.train, validation and test; leave files empty"
            )
        return self


ChannelKind = Literal["deviation", "log_ratio", "spread", "change", "missing", "level", "log_level"]


class ChannelsConfig(Section):
    """What the model sees of each metric in a row."""

    kinds: Annotated[tuple[ChannelKind, ...], Field(min_length=1), Listed] = (
        "deviation",
        "log_ratio",
        "spread",
        "change",
        "missing",
        "log_level",
    )
    levels: Literal["auto", "seen", "hidden", "both"] = "auto"  # which members of the model see the levels
    baselines: Annotated[tuple[AutoSpanField, ...], Field(min_length=1), Listed] = ("auto",)

    @model_validator(mode="after")
    def _levels_fit(self) -> Self:
        if self.levels in ("hidden", "both") and not self.may_hide:
            raise ValueError(
                f"levels: {self.levels} needs in kinds a level ({', '.join(LEVELS)}) and something else than levels"
            )
        return self

    @property
    def may_hide(self) -> bool:
        """Whether a member can do without the levels."""
        return bool(set(self.kinds) & set(LEVELS)) and bool(set(self.kinds) - set(LEVELS) - {"missing"})


class TrainingConfig(Section):
    """How the classifier learns."""

    init_from: str | None = Field(default=None, min_length=1)  # directory of a bundle to start from, as run_dir is
    epochs: int = Field(default=20, ge=1)
    min_steps: int = Field(default=300, ge=0)  # small data are gone through more often than `epochs`
    batch_size: int = Field(default=8, ge=1)  # stretches of `stretch` rows
    stretch: int = Field(default=128, ge=1)  # rows classified in one go; their history comes on top
    stride: int = Field(default=1, ge=1)  # every n-th row of a stretch is learnt from, others each epoch
    learning_rate: float = Field(default=2e-3, gt=0)  # at its peak
    warmup: float = Field(default=0.1, ge=0, lt=1)  # share of the steps before the peak
    weight_decay: float = Field(default=0.05, ge=0)  # not on biases and norms
    gradient_clip: float = Field(default=1.0, gt=0)  # largest norm
    label_smoothing: float = Field(default=0.05, ge=0, lt=1)
    class_weights: Literal["capped", "none", "balanced", "sqrt"] = "capped"  # sqrt: square root of balanced
    jitter: float = Field(default=0.1, ge=0)  # random scale and shift of channels, per stretch
    metric_dropout: float = Field(default=0.0, ge=0, lt=1)  # share of the metrics that are hidden, per stretch
    patience: int | None = Field(default=None, ge=1)  # epochs without a better validation score before stopping;
    # the best epoch is kept then, else the last
    save_steps: int | None = Field(default=100, ge=1)  # a checkpoint every so many steps, beside that of each epoch
    precision: Literal["float32", "bfloat16"] = "float32"  # of products of matrices in training; weights are float32
    compile: bool = False  # the steps of training, by torch.compile

    @model_validator(mode="after")
    def _stride_fits(self) -> Self:
        if self.stride > self.stretch:
            raise ValueError(f"stride {self.stride} is more than the {self.stretch} rows of a stretch")
        return self


class AlarmsConfig(Section):
    """When rows become an alarm; the rest of the rule is found on the validation rows, and `tune` changes it."""

    false_alarms_per_day: float | None = Field(default=None, ge=0)  # per series, at most; null: the best incident F1
    hysteresis: float = Field(default=0.5, gt=0, le=1)  # share of its threshold at which an incident goes on
    unknown_share: float = Field(default=0.02, ge=0, lt=1)  # of the rows of a series that may be unknown; 0: none


class Config(Section):
    """The whole configuration of a run."""

    data: DataConfig
    channels: ChannelsConfig = ChannelsConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    alarms: AlarmsConfig = AlarmsConfig()
    tracking: TrackingConfig = TrackingConfig()
    seed: int = Field(default=0, ge=0, lt=2**32)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: int | None = Field(default=None, ge=1, le=1024)  # CPU threads; default: PyTorch's choice
    run_dir: str = Field(default="runs/default", min_length=1)  # the directory training writes and load() reads

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain JSON values; `parse_config` of it gives an equal config."""
        return self.model_dump(mode="json")

    def given(self) -> dict[str, Any]:
        """The tree without the keys of `model` and `channels` that nobody gave; `parse_config` of it is equal.

        Where training starts from a bundle, those keys are the bundle's to say.
        """
        tree = self.to_dict()
        for name in ("model", "channels"):
            if name in self.model_fields_set:
                tree[name] = getattr(self, name).model_dump(mode="json", exclude_unset=True)
            else:
                del tree[name]
        return tree

    def to_yaml(self) -> str:
        """The tree as YAML text, every key included."""
        return dump_yaml(self.to_dict())


def load_config(source: str | Path | Mapping[str, Any] | Config, overrides: Iterable[str] = ()) -> Config:
    """A checked configuration from a YAML file, a dict, or a config; `overrides` are `a.b=value`.

    Raises:
        ConfigError: the file cannot be read, or a key is unknown, missing or has a wrong value.
    """
    if isinstance(source, (str, Path)):
        tree, name = read_yaml(Path(source)), str(source)
    else:
        tree, name = source.given() if isinstance(source, Config) else source, "config"
    if not isinstance(tree, Mapping):
        raise ConfigError(f"{name}: the config is not a mapping of sections (found {type(tree).__name__})")
    given = [overrides] if isinstance(overrides, str) else overrides
    return parse_config(apply_overrides(dict(tree), given), name)


def parse_config(tree: Mapping[str, Any], name: str = "config") -> Config:
    """A checked configuration from plain values. Raises ConfigError naming `name` and the key."""
    try:
        text = json.dumps(tree)  # JSON mode: strict about types, yet takes lists for tuples
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: {error}; the config holds only text, numbers, lists and sections") from error
    try:
        return Config.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(explain(error, name, Config)) from error
