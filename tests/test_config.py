from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from config_trees import refuse, tree
from netanomaly.build import build_input_format, build_spans, resolve_metrics
from netanomaly.config import (
    ChannelsConfig,
    Config,
    DataConfig,
    MetricConfig,
    ModelConfig,
    Section,
    SplitByFile,
    SplitBySeries,
    SplitByTable,
    SplitByTime,
    TimestampConfig,
    TrainingConfig,
    load_config,
    parse_config,
)
from netanomaly.config_model import (
    AttentionConfig,
    LanguageModelConfig,
    NoPositionsConfig,
    RelativeBiasConfig,
    RelativeKeyConfig,
    RotaryConfig,
    SinusoidalConfig,
    TableConfig,
)
from netanomaly.data.schema import UNITS
from netanomaly.errors import ConfigError
from netanomaly.yaml_reader import parse_yaml, read_yaml

PROPERTY = settings(max_examples=60, deadline=None)
CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*.yaml"))
SPLITS: dict[str, dict[str, Any]] = {
    "series": {"by": "series"},
    "time": {"by": "time"},
    "table": {"by": "table", "path": "split.csv"},
    "file": {"by": "file", "train": "a.csv", "validation": "b.csv"},
}


# Keys

SECTIONS: list[tuple[str, dict[str, Any], type[Section]]] = [
    ("", {}, Config),
    ("data", {}, DataConfig),
    ("data.timestamp", {}, TimestampConfig),
    ("data.split", SPLITS["series"], SplitBySeries),
    ("data.split", SPLITS["time"], SplitByTime),
    ("data.split", SPLITS["table"], SplitByTable),
    ("data.split", SPLITS["file"], SplitByFile),
    ("channels", {}, ChannelsConfig),
    ("model", {}, ModelConfig),
    ("model.sequence_model", {}, AttentionConfig),
    ("model.sequence_model", {"kind": "language_model", "path": "lm"}, LanguageModelConfig),
    ("model.sequence_model.positions", {}, SinusoidalConfig),
    ("model.sequence_model.positions", {"kind": "learned"}, TableConfig),
    ("model.sequence_model.positions", {"kind": "rotary"}, RotaryConfig),
    ("model.sequence_model.positions", {"kind": "relative_bias"}, RelativeBiasConfig),
    ("model.sequence_model.positions", {"kind": "relative_key"}, RelativeKeyConfig),
    ("model.sequence_model.positions", {"kind": "none"}, NoPositionsConfig),
    ("training", {}, TrainingConfig),
]
KEYS = [(path, rest, key) for path, rest, section in SECTIONS for key in section.model_fields if key != "by"]
KEY_NAMES = [f"{path} {rest.get('by', rest.get('kind', ''))} {key}" for path, rest, key in KEYS]


@pytest.mark.parametrize(("path", "rest", "key"), KEYS, ids=KEY_NAMES)
def test_a_misspelt_key_is_told_with_its_path_and_the_key_it_is_like(path: str, rest: dict[str, Any], key: str) -> None:
    wrong = f"{key[:2]}x{key[2:]}"
    given_tree = tree(f"{path}.{wrong}" if path else wrong, 1)
    place: Any = given_tree
    for section in path.split(".") if path else []:
        place = place[section]
    place.update(rest)
    where = f"{path}.{wrong}" if path else wrong
    assert f"c.yaml: {where}: unknown key; did you mean '{key}'?" in refuse(given_tree)


@pytest.mark.parametrize("key", MetricConfig.model_fields)
def test_a_misspelt_key_of_a_metric_is_told_with_its_number(key: str) -> None:
    message = refuse(tree("data.metrics", ["rtt", {"name": "loss", f"{key[:2]}x{key[2:]}": "1"}]))
    assert f"c.yaml: data.metrics.1.{key[:2]}x{key[2:]}: unknown key; did you mean '{key}'?" in message


def test_a_key_like_no_other_is_told_with_the_known_ones() -> None:
    assert "c.yaml: data.timestamp.qqq: unknown key; known here: column, format, unit" in refuse(
        tree("data.timestamp.qqq", 1)
    )


@pytest.mark.parametrize("key", ["run-dir", "max gap", "str", "int", "float"])
@pytest.mark.parametrize("section", ["", "data.", "model."])
def test_any_unknown_key_is_told_with_its_path(section: str, key: str) -> None:
    assert f"c.yaml: {section}{key}: unknown key; " in refuse(tree(f"{section}{key}", 1))


def test_a_list_with_a_wrong_item_is_not_called_too_short() -> None:
    assert refuse(tree("data.metrics", [{"nme": "rtt", "name": "rtt"}])) == (
        "c.yaml: data.metrics.0.nme: unknown key; did you mean 'name'?"
    )


def test_several_problems_are_told_at_once() -> None:
    message = refuse(tree("model", {"width": "wide", "wnidow": 2}) | {"sed": 1})
    assert [part for part in ("model.width", "model.wnidow", "sed") if f"c.yaml: {part}: " not in message] == []


# Values

WRONG: list[tuple[str, Any, str, str]] = [
    ("data", None, "data", "object"),
    ("data", [], "data", "object"),
    ("data.files", 3, "data.files.0", "valid string, found 3"),
    ("data.files", {"a": 1}, "data.files", "expected a list"),
    ("data.separator", ";;", "data.separator", "at most 1 character"),
    ("data.separator", "", "data.separator", "at least 1 character"),
    ("data.decimal", ";", "data.decimal", "'.' or ',', found ';'"),
    ("data.decimal", ",", "data", "separator and decimal are both ','"),
    ("data.missing", "-", "data.missing", "expected a list, like [a, b], found '-'"),
    ("data.missing", [-1], "data.missing.0", "valid string, found -1"),
    ("data.bad_lines", "drop", "data.bad_lines", "'error' or 'skip', found 'drop'"),
    ("data.label", 3, "data.label", "valid string, found 3"),
    ("data.label", ["a"], "data.label", "valid string"),
    ("data.series", [1], "data.series.0", "valid string, found 1"),
    ("data.metrics", [], "data.metrics", "give at least one"),
    ("data.metrics", "rtt", "data.metrics", "expected a list, like [a, b], found 'rtt'"),
    ("data.metrics", None, "data.metrics", "expected a list"),
    ("data.metrics", [3], "data.metrics.0", "found 3"),
    ("data.metrics", [""], "data.metrics.0.name", "at least 1 character"),
    ("data.metrics", [{"unit": "s"}], "data.metrics.0.name", "this key is required"),
    (
        "data.metrics",
        ["a", {"name": "b", "unit": "sec"}],
        "data.metrics.1.unit",
        "unknown unit 'sec'; known: 1, ratio, %",
    ),
    ("data.metrics", [{"name": "b", "unit": 1}], "data.metrics.0.unit", "valid string, found 1"),
    ("data.metrics", [{"name": "b", "kind": "count"}], "data.metrics.0.kind", "'gauge' or 'counter', found 'count'"),
    ("data.interval", 1, "data.interval", "valid string, found 1"),
    ("data.interval", "1", "data.interval", "'1' is not a duration; write a number and a unit"),
    ("data.interval", "0s", "data.interval", "'0s' is not longer than zero"),
    ("data.interval", "-1s", "data.interval", "'-1s' is not a duration"),
    ("data.max_gap", -1, "data.max_gap", "-1 rows is too short"),
    ("data.max_gap", "ten", "data.max_gap", "'ten' is not a duration"),
    ("data.max_gap", 2.5, "data.max_gap", "found 2.5"),
    ("data.max_gap", True, "data.max_gap", "found True"),
    ("data.duplicates", "first", "data.duplicates", "found 'first'"),
    ("data.timestamp.column", [], "data.timestamp.column", "give at least one"),
    ("data.timestamp", {"format": "epoch"}, "data.timestamp", "format epoch needs a unit: s, ms, us or ns"),
    ("data.timestamp", {"format": "elapsed"}, "data.timestamp", "format elapsed needs a unit"),
    ("data.timestamp", {"unit": "s"}, "data.timestamp", "unit is for the formats epoch and elapsed, not for rfc3339"),
    ("data.timestamp", {"format": "unix"}, "data.timestamp", "unknown format 'unix'; use rfc3339"),
    ("data.timestamp", {"format": "%H:%M"}, "data.timestamp", "the pattern '%H:%M' has no date; join the columns"),
    ("data.timestamp", {"format": "epoch", "unit": "sec"}, "data.timestamp.unit", "found 'sec'"),
    ("data.timestamp.mixed_offsets", "ok", "data.timestamp.mixed_offsets", "'error' or 'utc', found 'ok'"),
    ("data.split", {}, "data.split", "needs the key 'by'"),
    ("data.split", "series", "data.split", "found 'series'"),
    ("data.split", {"by": "random"}, "data.split", "by: 'random' is not one of 'series', 'time', 'table', 'file'"),
    ("data.split", {"by": "series", "train": []}, "data.split.train", "give at least one"),
    ("data.split", {"by": "series", "train": [1]}, "data.split.train.0", "valid string, found 1"),
    ("data.split", {"by": "series", "validation": 1.5}, "data.split.validation", "less than 1, found 1.5"),
    ("data.split", {"by": "series", "test": -0.1}, "data.split.test", "greater than 0"),
    ("data.split", {"by": "time", "test": 2.0}, "data.split.test", "2.0 is not a share between 0 and 1"),
    ("data.split", {"by": "time", "test": True}, "data.split.test", "found True"),
    ("data.split", {"by": "time", "purge": -1}, "data.split.purge", "greater than or equal to 0, found -1"),
    ("data.split", {"by": "table"}, "data.split.path", "this key is required"),
    ("data.split", {"by": "file", "train": "a"}, "data.split.validation", "this key is required"),
    ("data.split", {"by": "time", "path": "x"}, "data.split.path", "unknown key"),
    ("channels.kinds", [], "channels.kinds", "give at least one"),
    ("channels.kinds", ["devation"], "channels.kinds.0", "found 'devation'"),
    ("channels.baselines", [], "channels.baselines", "give at least one"),
    ("channels.baselines", [64, 0], "channels.baselines.1", "0 rows is too short"),
    ("channels.baselines", ["64"], "channels.baselines.0", "'64' is not a duration"),
    ("channels.baselines", "automatic", "channels.baselines.0", "'automatic' is not a duration"),
    ("channels.levels", "none", "channels.levels", "found 'none'"),
    ("channels", {"kinds": ["change"], "levels": "hidden"}, "channels", "levels: hidden needs in kinds a level"),
    ("channels", {"kinds": ["level", "missing"], "levels": "both"}, "channels", "and something else than levels"),
    ("model.members", 0, "model.members", "greater than or equal to 1"),
    ("training.min_steps", -1, "training.min_steps", "greater than or equal to 0, found -1"),
    ("training.epochs", True, "training.epochs", "found True"),
    ("training.epochs", 2.0, "training.epochs", "found 2.0"),
    ("training.epochs", "20", "training.epochs", "found '20'"),
    ("training.epochs", 0, "training.epochs", "greater than or equal to 1"),
    ("training.stride", 0, "training.stride", "greater than or equal to 1, found 0"),
    ("training.metric_dropout", 1.0, "training.metric_dropout", "less than 1, found 1.0"),
    ("training.metric_dropout", -0.1, "training.metric_dropout", "greater than or equal to 0, found -0.1"),
    ("training.stride", 1.5, "training.stride", "valid integer, found 1.5"),
    ("training.learning_rate", "1e-3", "training.learning_rate", "valid number, found '1e-3'"),
    ("training.learning_rate", True, "training.learning_rate", "found True"),
    ("training.learning_rate", None, "training.learning_rate", "valid number"),
    ("training.learning_rate", 0, "training.learning_rate", "greater than 0"),
    ("training.class_weights", None, "training.class_weights", "'capped', 'none', 'balanced' or 'sqrt'"),
    ("seed", -1, "seed", "greater than or equal to 0"),
    ("seed", 2**32, "seed", "less than 4294967296"),
    ("seed", True, "seed", "found True"),
    ("seed", "0", "seed", "found '0'"),
    ("device", "gpu", "device", "found 'gpu'"),
    ("threads", 0, "threads", "greater than or equal to 1"),
    ("threads", 5000, "threads", "less than or equal to 1024"),
    ("run_dir", 3, "run_dir", "valid string, found 3"),
]


@pytest.mark.parametrize(
    ("path", "value", "where", "told"), WRONG, ids=[f"{path}={value!r:.50}" for path, value, _, _ in WRONG]
)
def test_a_wrong_value_is_told_with_its_path(path: str, value: Any, where: str, told: str) -> None:
    message = refuse(tree(path, value))
    assert f"c.yaml: {where}: " in message
    assert told in message


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@PROPERTY
@given(st.sampled_from(KEYS), JSON)
def test_any_value_of_any_key_is_taken_or_refused(place: tuple[str, dict[str, Any], str], value: Any) -> None:
    path, rest, key = place
    given_tree = tree(path, dict(rest)) if path and path != "data" else tree()
    section = given_tree
    for name in path.split(".") if path else []:
        section = section[name]
    section[key] = value
    try:
        parse_config(given_tree, "c.yaml")
    except ConfigError as error:
        assert str(error).startswith("c.yaml: ")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("path", ["training.learning_rate", "data.split.test", "model.dropout"])
def test_a_number_that_is_none_is_refused(path: str, number: float) -> None:
    given_tree = tree("data.split", {"by": "time"})
    place: Any = given_tree
    *sections, key = path.split(".")
    for section in sections:
        place = place.setdefault(section, {})
    place[key] = number
    refuse(given_tree)


def test_a_number_that_is_none_is_told_with_its_path() -> None:
    assert "training.learning_rate" in refuse(tree("training.learning_rate", math.nan))


def test_a_duration_beyond_all_numbers_is_told_with_its_path() -> None:
    assert "data.interval" in refuse(tree("data.interval", "9" * 400 + "d"))


def test_a_label_and_incidents_do_not_go_together() -> None:
    message = refuse({"data": {"metrics": ["rtt"], "label": "state", "incidents": "incidents.csv"}})
    assert message == "c.yaml: data: give label or incidents, not both"


def test_files_and_a_split_by_file_do_not_go_together() -> None:
    message = refuse({"data": {"metrics": ["rtt"], "files": "a.csv", "split": SPLITS["file"]}})
    assert message.startswith("c.yaml: data: with split.by: file the files stand in split.train")


@pytest.mark.parametrize("value", [Path("x"), {1, 2}, object()], ids=["path", "set", "object"])
def test_what_yaml_cannot_hold_is_refused(value: Any) -> None:
    assert "the config holds only text, numbers, lists and sections" in refuse(tree("run_dir", value))


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_is_known(unit: str) -> None:
    assert parse_config(tree("data.metrics", [{"name": "x", "unit": unit}])).data.metrics[0].unit == unit


# What is short for what


def test_a_metric_may_be_its_name() -> None:
    assert parse_config(tree("data.metrics", ["rtt"])) == parse_config(tree("data.metrics", [{"name": "rtt"}]))


@pytest.mark.parametrize(
    ("path", "one"),
    [
        ("data.files", "a.csv"),
        ("data.series", "link"),
        ("data.timestamp.column", "time"),
        ("channels.baselines", 32),
        ("channels.baselines", "32s"),
    ],
)
def test_one_item_stands_for_a_list_of_one(path: str, one: Any) -> None:
    assert parse_config(tree(path, one)) == parse_config(tree(path, [one]))


def test_a_whole_number_is_a_number() -> None:
    assert parse_config(tree("training.learning_rate", 1)).training.learning_rate == 1.0


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        parse_config(tree()).model.width = 8  # type: ignore[misc]


# There and back


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_config_of_the_repository_is_valid_and_survives_a_dump(path: Path) -> None:
    config = load_config(path)
    dumped = config.to_yaml()
    again = parse_config(parse_yaml(dumped, "dump"))
    assert again == config
    assert again.to_yaml() == dumped


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
def test_every_kind_of_split_survives_a_dump(split: dict[str, Any]) -> None:
    config = parse_config(tree("data.split", split))
    assert parse_config(parse_yaml(config.to_yaml(), "dump")) == config
    assert parse_config(config.to_dict()) == config


NAMES = ["no", "on", "010", "12:30", "null", "~", "true", ".5", "+1", "0x1", "-", " x ", "a: b #c", "two\nlines", "'"]


def survives(name: str) -> bool:
    data = {"metrics": [name], "series": [name], "label": name, "missing": [name]}
    config = parse_config({"data": data, "run_dir": name})
    return parse_config(config.to_dict()) == config == parse_config(parse_yaml(config.to_yaml(), "dump"))


@pytest.mark.parametrize("name", [*NAMES, "08", "09", "1e3", "1e-3", "-2E5", "1.5e3"])
def test_a_name_survives_a_dump(name: str) -> None:
    assert survives(name)


@PROPERTY
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1, max_size=6))
@example("08")
def test_any_name_survives_a_dump(name: str) -> None:
    assert survives(name)


@PROPERTY
@given(st.floats(0, 0.999), st.floats(1e-300, 1e300))
def test_a_number_survives_a_dump_exactly(dropout: float, rate: float) -> None:
    config = parse_config(tree("model.dropout", dropout) | {"training": {"learning_rate": rate}} | tree())
    assert parse_config(parse_yaml(config.to_yaml(), "dump")) == config


def test_the_default_config_names_every_key() -> None:
    def keys(section: Any, path: str = "") -> set[str]:
        if not isinstance(section, dict):
            return {path}
        return {path}.union(*(keys(value, f"{path}.{key}") for key, value in section.items()))

    config = load_config(CONFIGS[0].parent / "default.yaml")
    assert keys(read_yaml(CONFIGS[0].parent / "default.yaml")) == keys(config.to_dict())


@pytest.mark.parametrize("section", ["channels", "model", "training", "seed", "device", "threads", "run_dir"])
def test_the_default_config_holds_the_defaults(section: str) -> None:
    assert getattr(load_config(CONFIGS[0].parent / "default.yaml"), section) == getattr(parse_config(tree()), section)


# Sources


def test_a_file_a_dict_and_a_config_load_alike(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(tree("model.width", 32)))
    config = load_config(path)
    assert config == load_config(str(path)) == load_config(tree("model.width", 32)) == load_config(config)


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"width": 32, "dropout": 0.3},
        {"sequence_model": {"kind": "attention", "positions": {"kind": "rotary"}}},
        {"sequence_model": {"kind": "attention", "depth": 2, "positions": {"kind": "sine", "add_to": "input"}}},
        {"sequence_model": {"kind": "language_model", "path": "lm"}},
    ],
)
def test_a_config_knows_which_keys_of_the_model_were_given(model: dict[str, Any]) -> None:
    config = parse_config({**tree(), "model": model, "channels": {"levels": "seen"}})
    found = config.given()
    assert found["model"] == model and found["channels"] == {"levels": "seen"}
    assert parse_config(found) == config and parse_config(found).given() == found
    assert load_config(config, ["seed=7"]).given() == {**found, "seed": 7}
    assert not {"model", "channels"} & set(parse_config(tree()).given())


def test_overrides_change_single_keys_of_any_source() -> None:
    for source in (tree("model.width", 32), parse_config(tree("model.width", 32))):
        config = load_config(source, ["model.window=16", "training.learning_rate=1e-3", "data.label=no"])
        assert (config.model.width, config.model.window) == (32, 16)
        assert config.training.learning_rate == 1e-3
        assert config.data.label == "no"


def test_an_override_is_checked_like_the_file() -> None:
    with pytest.raises(ConfigError, match=r"model\.widht: unknown key; did you mean 'width'"):
        load_config(tree(), ["model.widht=16"])


def test_a_given_dict_is_not_changed() -> None:
    given_tree = tree("model.width", 32)
    before = copy.deepcopy(given_tree)
    load_config(given_tree, ["model.width=64"])
    assert given_tree == before


@pytest.mark.parametrize("content", ["", "- a", "text", "3"])
def test_a_file_without_sections_is_told_with_its_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"{path}: the config is not a mapping of sections")


def test_a_problem_of_a_file_is_told_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("data: {metrics: [rtt]}\nmodel: {width: wide}")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"{path}: model.width: ")


# What the tree becomes


def test_spans_become_rows_of_the_interval() -> None:
    config = parse_config(
        {
            "data": {"metrics": ["rtt"], "interval": "500ms", "max_gap": "5s"},
            "channels": {"baselines": [32, "1m"]},
            "model": {"window": "16s", "stem": 3},
        }
    )
    spans = build_spans(config)
    assert (spans.interval_ns, spans.max_gap, spans.window, spans.stem) == (500_000_000, 10, 32, 3)
    assert spans.baselines == (32, 120)


@pytest.mark.parametrize("path", ["model.window", "model.stem", "channels.baselines"])
def test_spans_that_training_has_to_find_are_no_rows_yet(path: str) -> None:
    fixed = {"channels": {"baselines": 32}, "model": {"window": 16, "stem": 3}}
    config = load_config({"data": {"metrics": ["rtt"], "interval": "1s"}, **fixed}, [f"{path}=auto"])
    with pytest.raises(ConfigError, match=f"^{path}: auto is found from labelled rows"):
        build_spans(config)


def test_spans_need_an_interval() -> None:
    with pytest.raises(ConfigError, match=r"^data\.interval: this key is required"):
        build_spans(parse_config(tree()))


def test_metrics_are_read_from_their_column_or_their_name() -> None:
    config = parse_config(tree("data.metrics", ["rtt", {"name": "loss", "column": "Loss %", "unit": "%"}]))
    metrics = build_input_format(config.data).metrics
    assert [(metric.name, metric.column, metric.factor) for metric in metrics] == [
        ("rtt", "rtt", 1.0),
        ("loss", "Loss %", 0.01),
    ]


HEADER = ["timestamp", "link", "tx_b", "rtt", "tx_a", "rx", "label"]


@pytest.mark.parametrize(
    ("given_metrics", "names"),
    [
        (["rtt"], ["rtt"]),
        (["tx_*"], ["tx_b", "tx_a"]),
        (["*"], ["tx_b", "rtt", "tx_a", "rx"]),
        (["rtt", "*"], ["rtt", "tx_b", "tx_a", "rx"]),
        (["tx_?", "r*"], ["tx_b", "tx_a", "rtt", "rx"]),
        (["r*", "*"], ["rtt", "rx", "tx_b", "tx_a"]),
        ([{"name": "down", "column": "rx"}, "*"], ["down", "tx_b", "rtt", "tx_a"]),
    ],
)
def test_a_pattern_takes_the_columns_that_are_nothing_else(given_metrics: list[Any], names: list[str]) -> None:
    data = {"metrics": given_metrics, "series": "link", "label": "label"}
    config = resolve_metrics(parse_config({"data": data}), HEADER)
    assert [metric.name for metric in config.data.metrics] == names


def test_a_pattern_hands_its_unit_and_kind_on() -> None:
    pattern = {"name": "tx_*", "unit": "byte", "kind": "counter"}
    config = resolve_metrics(parse_config(tree("data.metrics", [pattern])), HEADER)
    assert {(metric.unit, metric.kind) for metric in config.data.metrics} == {("byte", "counter")}


@pytest.mark.parametrize(
    ("given_metrics", "told"),
    [
        (["rtt", "cpu_*"], "the pattern 'cpu_*' matches no column of timestamp, link, tx_b"),
        (["rtt", "rtt"], "the metric 'rtt' is given twice"),
        (["*", "tx_*"], "the pattern 'tx_*' matches no column of timestamp, link, tx_b"),
        (["tx_*", "tx_a"], None),
        (["tx_a", {"name": "tx_a", "column": "rx"}], "the metric 'tx_a' is given twice"),
    ],
)
def test_patterns_that_cannot_be_followed_are_config_errors(given_metrics: list[Any], told: str | None) -> None:
    config = parse_config(tree("data.metrics", given_metrics))
    if told is None:
        assert [metric.name for metric in resolve_metrics(config, HEADER).data.metrics] == ["tx_b", "tx_a"]
        return
    with pytest.raises(ConfigError) as caught:
        resolve_metrics(config, HEADER)
    assert str(caught.value).startswith(f"data.metrics: {told}")


@pytest.mark.parametrize("other", [{"series": "rtt"}, {"label": "rtt"}, {"timestamp": {"column": "rtt"}}])
def test_a_column_is_a_metric_or_something_else(other: dict[str, Any]) -> None:
    config = parse_config({"data": {"metrics": ["rtt"], **other}})
    with pytest.raises(ConfigError, match=r"^data\.metrics: 'rtt' is the column of time, series or label as well"):
        build_input_format(config.data)
