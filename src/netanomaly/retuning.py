"""A trained bundle's decisions are changed, without training: found anew on the validation rows, or by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from netanomaly.bundle import Bundle, load_bundle, save_bundle
from netanomaly.data_quality import fill_gaps_of_labels
from netanomaly.deciding import tuned_again, with_rule, with_unknown_share
from netanomaly.decisions import Decisions
from netanomaly.errors import ConfigError
from netanomaly.interrupts import whole
from netanomaly.locks import locked
from netanomaly.predictor import load
from netanomaly.scoring import prepare_again


@dataclass(frozen=True)
class Wishes:
    """What is to change.

    Attributes:
        choose: the rule is chosen again on the validation rows.
        false_alarms_per_day: then, per series, at most; None: the best incident F1.
        unknown_share: of the rows of a series that may be called unknown; 0: none is; None: it stays.
        changes: by hand, of `hysteresis`, `min_rows`, `merge_rows`.
        thresholds: by hand, by class; of other classes they stay.
    """

    choose: bool = False
    false_alarms_per_day: float | None = None
    unknown_share: float | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)


def tune_bundle(directory: Path, wishes: Wishes, overrides: Iterable[str] = ()) -> Bundle:
    """Change a bundle's decisions as wished, all or nothing, and save it.

    Args:
        overrides: changes to how and from where the validation rows are read, as for `load`.

    Raises:
        ConfigError: a wish cannot be, or the validation rows cannot be read.
        DataError: the validation rows are not as they should be.
        BundleError: there is no bundle, or it is damaged.
    """
    load_bundle(directory)  # first: it says best what is missing
    with locked(directory):
        return _tune(directory, wishes, overrides)


def _tune(directory: Path, wishes: Wishes, overrides: Iterable[str]) -> Bundle:
    bundle = load_bundle(directory)
    _changed(bundle, wishes)  # what is wrong is told before anything takes time
    target, share = wishes.false_alarms_per_day, wishes.unknown_share
    if target is not None and not 0 <= target < float("inf"):
        raise ConfigError(f"false_alarms_per_day: {target} is no number of alarms")
    if share is not None and not 0 <= share < 1:
        raise ConfigError(f"--unknown-share {share}: give a share from 0 to less than 1")
    if wishes.choose or share is not None:
        predictor = load(directory, overrides=overrides)
        prepared = fill_gaps_of_labels(prepare_again(predictor, predictor.config))
        if wishes.choose:
            read = replace(bundle, config=predictor.config)
            bundle = with_rule(_with_alarms(bundle, target), tuned_again(read, prepared, predictor.device, target))
        if share is not None:
            bundle = with_unknown_share(bundle, prepared, share)
    bundle = _changed(bundle, wishes)
    with whole():
        save_bundle(directory, bundle)
    return bundle


def _with_alarms(bundle: Bundle, target: float | None) -> Bundle:
    """The bundle with the target in its config."""
    alarms = bundle.config.alarms.model_copy(update={"false_alarms_per_day": target})
    return replace(bundle, config=bundle.config.model_copy(update={"alarms": alarms}))


def _changed(bundle: Bundle, wishes: Wishes) -> Bundle:
    """The bundle with what is changed by hand. Raises ConfigError if a value is out of its range."""
    if not wishes.changes and not wishes.thresholds:
        return bundle
    rule = bundle.decisions.alarms
    unknown = sorted(set(wishes.thresholds) - set(rule.thresholds))
    if unknown:
        raise ConfigError(f"--threshold {unknown[0]}: the bundle's classes are {', '.join(rule.thresholds)}")
    try:
        rule = replace(rule, thresholds={**rule.thresholds, **wishes.thresholds}, **wishes.changes)
    except ValueError as error:
        raise ConfigError(f"tune: {error}") from error
    facts = {name: value for name, value in bundle.facts.items() if name != "alarms"}  # they were another rule's
    decisions = replace(bundle.decisions, alarms=rule)
    return replace(bundle, decisions=decisions, facts={**facts, "alarms": {"by_hand": True}})


def decisions_text(decisions: Decisions) -> str:
    """The rule for alarms, and what is unknown, for a terminal."""
    rule, known = decisions.alarms, decisions.known
    lines = [f"{name}: raised at a probability of {value:g}" for name, value in rule.thresholds.items()]
    return "\n".join(
        [
            *lines,
            f"goes on above {rule.hysteresis:g} times that; {rule.min_rows} rows at least; "
            f"pauses of up to {rule.merge_rows} rows do not end an incident",
            "no row is called unknown"
            if known is None or known.limit == float("inf")
            else f"unknown: further than {known.limit:.3g} from all that training has seen (a usual row: about 1)",
        ]
    )
