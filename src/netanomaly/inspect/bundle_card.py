"""What a bundle expects, what it was trained on and how it scored: from its own files, nothing is computed anew."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from netanomaly.build import build_spans, history_rows
from netanomaly.bundle import Bundle, load_bundle
from netanomaly.bundle_files import CONTENT, WEIGHTS, read_manifest
from netanomaly.errors import BundleError
from netanomaly.evaluation.tables import score, table
from netanomaly.files import read_regular
from netanomaly.inspect.text import aligned
from netanomaly.run_directory import EVALUATION
from netanomaly.strict_json import parse_json

MOST_EVALUATION = 2**28
"""Bytes of an evaluation that are read: it has scores of every series."""

_SCORES = {"macro_f1": "macro-F1", "accuracy": "accuracy", "incident_recall": "incidents found"}


def bundle_card(directory: Path) -> dict[str, Any]:
    """A bundle as plain values.

    Raises:
        BundleError: there is none, or its files are not those that were saved.
    """
    bundle = load_bundle(directory)  # checks sizes and SHA-256
    try:
        return _card(directory, bundle)
    except (KeyError, TypeError, AttributeError) as error:
        raise BundleError(f"{directory}: how it was trained is not written as expected: {error}") from error


def _card(directory: Path, bundle: Bundle) -> dict[str, Any]:
    config, spans, facts = bundle.config, build_spans(bundle.config), bundle.facts
    data = config.data
    split = facts.get("split", {})
    manifest = read_manifest(directory)
    return {
        "bundle": str(directory),
        "format": manifest.format,
        "files": {name: asdict(manifest.files[name]) for name in (WEIGHTS, CONTENT)},
        "created": facts.get("created"),
        "versions": facts.get("versions", {}),
        "expects": {
            "metrics": [
                {"name": m.name, "column": m.column or m.name, "unit": m.unit, "kind": m.kind} for m in data.metrics
            ],
            "timestamp": data.timestamp.model_dump(mode="json"),
            "series": list(data.series),
            "separator": data.separator,
            "decimal": data.decimal,
            "missing": list(data.missing),
            "interval": data.interval,
            "max_gap": data.max_gap,
            "duplicates": data.duplicates,
        },
        "looks_back": {
            "window_rows": spans.window,
            "baseline_rows": list(spans.baselines),
            "rows": history_rows(config),
        },
        "classes": list(bundle.classes),
        "trained_on": {
            "files": facts.get("data", {}).get("files", []),
            **{key: facts.get("data", {}).get(key) for key in ("rows", "start", "end")},
            "parts": {part: split[part] for part in ("train", "validation", "test") if part in split},
        },
        "validation_macro_f1": facts.get("training", {}).get("validation_macro_f1"),
        "init_from": facts.get("init_from"),
        "evaluation": _evaluation(directory),
        "card": facts.get("card"),
    }


def _evaluation(directory: Path) -> dict[str, Any] | None:
    """The scores beside the bundle; None if it was not evaluated.

    Raises:
        BundleError: the file is there and is no evaluation.
    """
    path = directory / EVALUATION
    if not path.exists():
        return None
    try:
        report = parse_json(read_regular(path, MOST_EVALUATION))
        return {
            **{key: report.get(key) for key in _SCORES},
            "rows": report["rows"],
            "series": list(report["per_series"]),
            "f1": {name: entry["f1"] for name, entry in report["per_class"].items()},
            "baselines_macro_f1": {name: entry["macro_f1"] for name, entry in report["baselines"].items()},
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BundleError(f"{path}: not an evaluation as netanomaly eval writes it: {error}") from error


def bundle_text(card: dict[str, Any]) -> str:
    """The same for a terminal. Raises BundleError if how it was trained is not written as expected."""
    try:
        text = _text(card)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BundleError(f"{card['bundle']}: how it was trained is not written as expected: {error}") from error
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in text)


def _text(card: dict[str, Any]) -> str:
    expects, looks, trained = card["expects"], card["looks_back"], card["trained_on"]
    size = sum(entry["bytes"] for entry in card["files"].values())
    time = expects["timestamp"]
    extra = "".join(f", {key} {time[key]}" for key in ("unit", "timezone") if time[key])
    versions = ", ".join(f"{name} {version}" for name, version in card["versions"].items())
    about = [
        ("bundle", f"{card['bundle']} (format {card['format']}, {size / 1e6:.2f} MB, sizes and SHA-256 as saved)"),
        ("made", f"{card['created'] or 'unknown when'} with {versions or 'unknown versions'}"),
        ("time", f"{' + '.join(time['column'])}: {time['format']}{extra}"),
        ("series", " + ".join(expects["series"]) or "each file is one"),
        ("interval", f"{expects['interval']}; gaps up to {expects['max_gap']}; duplicates: {expects['duplicates']}"),
        (
            "looks back",
            f"{looks['window_rows']} rows; with baselines of {_rows(looks['baseline_rows'])}, {looks['rows']} rows",
        ),
        ("classes", ", ".join(card["classes"])),
    ]
    if card["init_from"]:
        about.append(("started from", str(card["init_from"]["path"])))
    metrics = [("metric", "column", "unit", "kind")]
    metrics += [(m["name"], m["column"], m["unit"], m["kind"]) for m in expects["metrics"]]
    parts = [aligned(about), aligned(metrics), _trained(trained), _scores(card), _classes(card)]
    parts += _limits(card["card"])
    return "\n\n".join("\n".join(part) for part in parts)


def _limits(card: dict[str, Any] | None) -> list[list[str]]:
    """How a bundle for many uses does with some of its metrics only, and what it cannot know."""
    if card is None:
        return []
    rows = [
        (
            one["metrics"],
            *(score(one[key]) for key in ("macro_f1", "recall", "precision")),
            f"{one['false_alarms_per_series_day']:.0f}",
            score(one["unknown"]),
        )
        for one in card["metrics"]
    ]
    header = (
        "test links, with these metrics only",
        "macro-F1",
        "incidents found",
        "precision",
        "false a day",
        "unknown",
    )
    return [table(header, rows), ["it cannot know:", *(f"- {text}" for text in card["cannot_know"])]]


def _rows(counts: list[int]) -> str:
    return ", ".join(map(str, counts)) or "none"


def _trained(trained: dict[str, Any]) -> list[str]:
    """What was read, and the parts it was split into."""
    files = ", ".join(str(file["path"]) for file in trained["files"][:4]) or "frames in memory"
    span = f", {trained['start']} to {trained['end']}" if trained["start"] else ""
    lines = [f"trained on {files}: {trained['rows']} rows{span}"]
    rows = []
    for part, entry in trained["parts"].items():
        names = entry["series"]
        rows.append((f"  {part}", f"{entry['rows']} labelled rows of {len(names)} series", _some(names)))
    return lines + (aligned(rows) if rows else [])


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _scores(card: dict[str, Any]) -> list[str]:
    """How well it did on validation rows, and on test rows if it was evaluated."""
    lines = [f"validation macro-F1 {score(card['validation_macro_f1'])}"]
    report = card["evaluation"]
    if report is None:
        return [*lines, f"no {EVALUATION} beside it: netanomaly eval {card['bundle']}"]
    scores = ", ".join(f"{what} {score(report[key])}" for key, what in _SCORES.items())
    others = ", ".join(f"{name} {score(value)}" for name, value in report["baselines_macro_f1"].items())
    lines.append(f"evaluated on {report['rows']} rows of {_some(report['series'])}: {scores}")
    return [*lines, f"macro-F1 of others: {others or 'none'}"]


def _classes(card: dict[str, Any]) -> list[str]:
    """Rows of each class in each part, and how well it is told."""
    parts, report = card["trained_on"]["parts"], card["evaluation"]
    f1 = report["f1"] if report else {}
    rows = [
        (name, *(str(entry["classes"].get(name, 0)) for entry in parts.values()), score(f1.get(name)))
        for name in dict.fromkeys((*card["classes"], *f1))
    ]
    return table(("class", *parts, "F1"), rows)
