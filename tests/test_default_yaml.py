"""configs/default.yaml is the reference of the configuration: every key, with its default."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from netanomaly.config import (
    Config,
    MetricConfig,
    SplitByFile,
    SplitBySeries,
    SplitByTable,
    SplitByTime,
    TimestampConfig,
    load_config,
)
from netanomaly.yaml_reader import read_yaml

PATH = Path(__file__).parents[1] / "configs" / "default.yaml"
TREE = read_yaml(PATH)
SECTIONS: dict[str, tuple[type[BaseModel], dict[str, object]]] = {
    "top": (Config, TREE),
    **{name: (Config.model_fields[name].annotation, TREE[name]) for name in ("data", "channels", "model", "training")},  # type: ignore[dict-item]
    "timestamp": (TimestampConfig, TREE["data"]["timestamp"]),
    "split": (SplitBySeries, TREE["data"]["split"]),
    "metric": (MetricConfig, TREE["data"]["metrics"][1]),
}


@pytest.mark.parametrize(("section", "shown"), SECTIONS.values(), ids=SECTIONS.keys())
def test_every_key_is_shown(section: type[BaseModel], shown: dict[str, object]) -> None:
    assert set(shown) == set(section.model_fields)


@pytest.mark.parametrize("split", [SplitByTime, SplitByTable, SplitByFile])
def test_the_other_splits_stand_in_comments_with_every_key(split: type[BaseModel]) -> None:
    name = str(split.model_fields["by"].annotation.__args__[0])  # type: ignore[union-attr]
    lines = PATH.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().startswith(f"# by: {name}"))
    for number, key in enumerate(key for key in split.model_fields if key != "by"):
        assert lines[start + 1 + number].strip().startswith(f"#   {key}:")


def test_the_values_are_the_defaults() -> None:
    shown = load_config(PATH).to_dict()
    defaults = load_config({"data": {"metrics": ["x"]}}).to_dict()
    for own in ("files", "metrics", "label", "interval"):  # what only the user can know
        shown["data"].pop(own), defaults["data"].pop(own)
    assert shown == defaults
