"""From the config to the members of the model: how many, how far each looks back, which channels it sees."""

from __future__ import annotations

from netanomaly.build import build_spans
from netanomaly.build_model import build_classifier
from netanomaly.config import Config
from netanomaly.config_model import AttentionConfig, ModelConfig
from netanomaly.data.channels import LEVELS, channel_groups
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.model.ensemble import Ensemble
from netanomaly.training.metric_dropout import MetricDropout


def build_model(config: Config, channels: int, classes: int, *, pretrained: bool = False) -> Ensemble:
    """A classifier of the config's shape with fresh weights, or `pretrained` ones where the config names some.

    The members that do not see the levels come first, where there are both.
    """
    members, views = [], []
    for view in build_views(config, channels):
        for place in range(config.model.members):
            seen = channels if view is None else len(view)
            members.append(build_member(config, place, seen, classes, pretrained=pretrained))
            views.append(view)
    return Ensemble(members, views)


def build_member(
    config: Config, place: int, channels: int, classes: int, *, pretrained: bool = False
) -> NetworkAnomalyClassifier:
    """One of the classifiers that `build_model` puts together.

    Args:
        place: among the members of its kind, which says how far it looks back.
        channels: as many as its view has.
    """
    model, window, stem = _sight(config, place)
    return build_classifier(model, window, stem, channels, classes, pretrained=pretrained)


def _sight(config: Config, place: int) -> tuple[ModelConfig, int, int]:
    """Shape, window and stem of the member at a place: the whole window, then the short ones, and so on.

    The stem of a short window is half of it at most: what it joins is not to be all that the window holds.
    """
    spans, model = build_spans(config), config.model
    number = place % (1 + len(spans.short_windows))
    if number == 0:
        return model, spans.window, spans.stem
    patch = model.sequence_model.patch
    rows = min(-(-spans.short_windows[number - 1] // patch) * patch, spans.window)
    shape = with_window(model, rows)
    return shape, rows, min(spans.stem, max(1, rows // 2))


def with_window(model: ModelConfig, rows: int) -> ModelConfig:
    """The shape with a window of so many rows, or fewer: a whole number of patches, at least one.

    What of the look-up reaches further than all of the window reaches all of it.
    """
    choice = model.sequence_model
    tokens = max(1, rows // choice.patch)
    if isinstance(choice, AttentionConfig):
        reach = {"prefix": choice.prefix, "local": choice.local}
        fitting = {key: min(most, tokens) for key, most in reach.items() if most is not None}
        choice = choice.model_copy(update=fitting)
    return model.model_copy(update={"window": tokens * choice.patch, "sequence_model": choice})


def build_views(config: Config, channels: int) -> list[list[int] | None]:
    """Which channels the members see, by `channels.levels`: numbers of channels, or None for all of them."""
    match config.channels.levels:
        case "hidden":
            return [without_levels(config, channels)]
        case "both":
            return [without_levels(config, channels), None]
        case _:
            return [None]


def without_levels(config: Config, channels: int) -> list[int]:
    """The channels that say how metrics move, of all `channels`, whose groups are those of `Channels`."""
    groups = _groups(config)
    metrics = channels // len(groups)
    return [i for i in range(channels) if groups[i // metrics] not in LEVELS]


def build_metric_dropout(config: Config, channels: int) -> MetricDropout | None:
    """What hides metrics while a member learns, by `training.metric_dropout`; None: nothing.

    Args:
        channels: all of them, whatever the member sees: levels come last, so without them the groups keep their places.
    """
    if config.training.metric_dropout == 0:
        return None
    groups = _groups(config)
    missing = groups.index("missing") if "missing" in groups else None
    return MetricDropout(config.training.metric_dropout, channels // len(groups), missing)


def _groups(config: Config) -> list[str]:
    return channel_groups(config.channels.kinds, build_spans(config).baselines)
