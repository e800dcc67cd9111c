"""A trained bundle's rule for alarms is changed, without training: found anew on the validation rows, or by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from netanomaly.bundle import Bundle, load_bundle, save_content
from netanomaly.data_quality import fill_gaps_of_labels
from netanomaly.deciding import tuned_again, with_rule, with_unknown_share
from netanomaly.decisions import Decisions
from netanomaly.errors import ConfigError
from netanomaly.interrupts import whole
from netanomaly.predictor import load
from netanomaly.scoring import prepare_again


def retune(directory: Path, false_alarms_per_day: float | None, overrides: Iterable[str] = ()) -> Bundle:
    """Choose the rule again on the validation rows of the bundle's data, which have to be where they were.

    Args:
        false_alarms_per_day: per series, at most; None: the best incident F1.
        overrides: changes to how and from where rows are read, as for `load`.

    Raises:
        ConfigError, DataError: the number is negative, or the validation rows cannot be read.
        BundleError: there is no bundle, or it is damaged.
    """
    if false_alarms_per_day is not None and not 0 <= false_alarms_per_day < float("inf"):
        raise ConfigError(f"false_alarms_per_day: {false_alarms_per_day} is no number of alarms")
    predictor = load(directory, overrides=overrides)
    bundle = load_bundle(directory)
    prepared = fill_gaps_of_labels(prepare_again(predictor, predictor.config))
    tuned = tuned_again(replace(bundle, config=predictor.config), prepared, predictor.device, false_alarms_per_day)
    alarms = bundle.config.alarms.model_copy(update={"false_alarms_per_day": false_alarms_per_day})
    config = bundle.config.model_copy(update={"alarms": alarms})
    return _saved(directory, with_rule(replace(bundle, config=config), tuned))


def retune_unknown(directory: Path, share: float, overrides: Iterable[str] = ()) -> Bundle:
    """Choose again, on the validation rows, above which novelty rows are unknown.

    Args:
        share: of the validation rows that may be; 0: no row is ever called unknown.
        overrides: as for `retune`.

    Raises:
        ConfigError, DataError, BundleError: as of `retune`; or the share is none.
    """
    if not 0 <= share < 1:
        raise ConfigError(f"--unknown-share {share}: give a share from 0 to less than 1")
    predictor = load(directory, overrides=overrides)
    prepared = fill_gaps_of_labels(prepare_again(predictor, predictor.config))
    return _saved(directory, with_unknown_share(load_bundle(directory), prepared, share))


def change_rule(directory: Path, changes: Mapping[str, Any], thresholds: Mapping[str, float]) -> Bundle:
    """Change single values of the rule by hand.

    Args:
        changes: of `hysteresis`, `min_rows`, `merge_rows`.
        thresholds: by class; of other classes they stay.

    Raises:
        ConfigError: a value is out of its range, or there is no such class.
    """
    bundle = load_bundle(directory)
    rule = bundle.decisions.alarms
    unknown = sorted(set(thresholds) - set(rule.thresholds))
    if unknown:
        raise ConfigError(f"--threshold {unknown[0]}: the bundle's classes are {', '.join(rule.thresholds)}")
    try:
        rule = replace(rule, thresholds={**rule.thresholds, **thresholds}, **changes)
    except ValueError as error:
        raise ConfigError(f"tune: {error}") from error
    facts = {name: value for name, value in bundle.facts.items() if name != "alarms"}  # they were another rule's
    decisions = replace(bundle.decisions, alarms=rule)
    return _saved(directory, replace(bundle, decisions=decisions, facts={**facts, "alarms": {"by_hand": True}}))


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


def _saved(directory: Path, bundle: Bundle) -> Bundle:
    with whole():
        save_content(directory, bundle)
    return bundle
