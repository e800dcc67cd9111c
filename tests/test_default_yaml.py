"""configs/default.yaml is the reference of the configuration: every key, with its default."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

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
from netanomaly.config_fields import Section
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
from netanomaly.yaml_reader import parse_yaml, read_yaml

PATH = Path(__file__).parents[1] / "configs" / "default.yaml"
TREE = read_yaml(PATH)
SECTIONS: dict[str, tuple[type[BaseModel], dict[str, object]]] = {
    "top": (Config, TREE),
    **{name: (Config.model_fields[name].annotation, TREE[name]) for name in ("data", "channels", "model", "training")},  # type: ignore[dict-item]
    "timestamp": (TimestampConfig, TREE["data"]["timestamp"]),
    "split": (SplitBySeries, TREE["data"]["split"]),
    "sequence model": (AttentionConfig, TREE["model"]["sequence_model"]),
    "positions": (SinusoidalConfig, TREE["model"]["sequence_model"]["positions"]),
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


KINDS: dict[str, type[Section]] = {
    "sine": TableConfig,
    "rotary": RotaryConfig,
    "relative_bias": RelativeBiasConfig,
    "relative_key": RelativeKeyConfig,
    "none": NoPositionsConfig,
    "language_model": LanguageModelConfig,
}


def _in_comments(kind: str) -> dict[str, object]:
    """The keys below `# kind: ...`, which are indented by two more, with their values."""
    lines = [line.strip() for line in PATH.read_text(encoding="utf-8").splitlines()]
    start = next(i for i, line in enumerate(lines) if line.split()[:3] == ["#", "kind:", kind])
    below = itertools.takewhile(lambda line: line.startswith("#   "), lines[start + 1 :])
    shown = [line.removeprefix("#   ").split("  ")[0] for line in below]  # two spaces, then what it means
    return parse_yaml("\n".join(shown) or "{}", kind)


@pytest.mark.parametrize(("kind", "section"), KINDS.items(), ids=KINDS)
def test_the_other_kinds_stand_in_comments_with_every_key_and_its_default(kind: str, section: type[Section]) -> None:
    shown = _in_comments(kind)
    assert list(shown) == [key for key in section.model_fields if key != "kind"]
    assert shown == {key: section.model_fields[key].default for key in shown}


def test_every_word_of_every_choice_is_shown() -> None:
    text = PATH.read_text(encoding="utf-8")
    words = {
        word
        for section in (AttentionConfig, *KINDS.values())
        for field in section.model_fields.values()
        for word in _words(field.annotation)
    }
    assert len(words) >= 40
    assert [word for word in sorted(words) if not re.search(rf"\b{word}\b", text)] == []


def _words(annotation: Any) -> set[str]:
    """Those of every `Literal` in a type."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return {word for part in get_args(annotation) for word in _words(part)}


def test_the_values_are_the_defaults() -> None:
    shown = load_config(PATH).to_dict()
    defaults = load_config({"data": {"metrics": ["x"]}}).to_dict()
    for own in ("files", "metrics", "label", "interval"):  # what only the user can know
        shown["data"].pop(own), defaults["data"].pop(own)
    assert shown == defaults
