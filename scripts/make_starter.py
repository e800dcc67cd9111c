"""Train the starter bundle, measure it with some of its metrics only, and put it into the package.

    python scripts/make_starter.py            # configs/starter.yaml, some minutes
    python scripts/make_starter.py --measure  # the bundle in the package again, nothing is trained

For every subset of metrics the rows of the test links are answered as if the others had never been measured. The scores
become part of the bundle: `netanomaly inspect starter` shows them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.command import run_command  # noqa: E402

from netanomaly import keep_freed_memory, load, train  # noqa: E402
from netanomaly.alarms.matching import alarm_scores  # noqa: E402
from netanomaly.bundle import load_bundle, save_bundle  # noqa: E402
from netanomaly.bundle_files import CONTENT, MANIFEST, WEIGHTS  # noqa: E402
from netanomaly.config import load_config  # noqa: E402
from netanomaly.data.splits import TEST  # noqa: E402
from netanomaly.evaluation.metrics import macro_f1, per_class  # noqa: E402
from netanomaly.evaluation.tables import score, table  # noqa: E402
from netanomaly.prepare import prepare  # noqa: E402
from netanomaly.scoring import scored_rows  # noqa: E402
from netanomaly.starter import starter_directory  # noqa: E402

CONFIG = ROOT / "configs" / "starter.yaml"
THROUGHPUT, PACKETS = ("throughput_rx", "throughput_tx"), ("packets_rx", "packets_tx")
DELAY = ("rtt", "jitter", "loss")
SUBSETS: dict[str, tuple[str, ...]] = {
    "all": (),  # of them
    "throughput, packets, drops": (*THROUGHPUT, *PACKETS, "queue_drops"),
    "throughput, rtt, jitter, loss": (*THROUGHPUT, *DELAY),
    "throughput, rtt": (*THROUGHPUT, "rtt"),
    "throughput": THROUGHPUT,
    "rtt, jitter, loss": DELAY,
    "rtt, loss": ("rtt", "loss"),
    "rtt": ("rtt",),
    "rtt, retransmits, flows": ("rtt", "retransmits", "flows", "new_flows", "tcp_resets"),
    "flows": ("flows", "new_flows", "tcp_resets"),
}
CANNOT_KNOW = (
    "eight emulated links of one testbed, 8.5 to 39.5 Mbit/s, half an hour, eight kinds of injected faults: other "
    "faults, wireless links, day and night, and much larger or slower networks were never seen",
    "rows were half a second apart; with minutes between rows a fault of some rows lasts minutes, which was not tried",
    "no metric says where it stands, only how it moves against its own recent past: what is always bad looks normal",
)


def main() -> None:
    """Train, measure, install, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="train nothing")
    parser.add_argument("--bundle", type=Path, metavar="DIR", help="a run of configs/starter.yaml: train nothing")
    options = parser.parse_args()
    keep_freed_memory()
    place = starter_directory()
    if not options.measure:
        source = options.bundle
        if source is None:
            source = ROOT / "runs" / "starter"
            changes = [f"data.root={json.dumps(str(ROOT))}", f"run_dir={json.dumps(str(source))}", "threads=1"]
            train(load_config(CONFIG, changes), overwrite=True)
        place.mkdir(exist_ok=True)
        for name in (WEIGHTS, CONTENT, MANIFEST):
            shutil.copy(source / name, place / name)
    bundle = load_bundle(place)
    tree = {**bundle.config.to_dict(), "run_dir": "runs/starter", "device": "auto", "threads": None}
    tree["data"] = {**tree["data"], "root": "."}
    scores = measure(place)
    read = [{**file, "path": "data/testbed/data.csv.gz"} for file in bundle.facts["data"]["files"]]
    facts = {
        **bundle.facts,
        "data": {**bundle.facts["data"], "files": read},
        "card": {"metrics": scores, "cannot_know": list(CANNOT_KNOW)},
    }
    save_bundle(place, replace(bundle, config=load_config(tree), facts=facts))
    print("\n".join(as_lines(scores)))
    print(f"{sum(path.stat().st_size for path in place.iterdir()) / 1e6:.2f} MB: {place}")


def measure(place: Path) -> list[dict[str, Any]]:
    """Scores on the test links with each subset of the metrics."""
    bundle = load_bundle(place)
    known = [metric.model_dump(mode="json") for metric in bundle.config.data.metrics]
    found = []
    for name, subset in SUBSETS.items():
        metrics = [{**metric, "measured": not subset or metric["name"] in subset} for metric in known]
        root = f"data.root={json.dumps(str(ROOT))}"
        found.append({"metrics": name, **_scores(place, [f"data.metrics={json.dumps(metrics)}", root])})
    return found


def _scores(place: Path, overrides: Sequence[str]) -> dict[str, Any]:
    predictor = load(place, overrides=overrides)
    prepared = prepare(predictor.config)
    grid, wanted = prepared.grid, prepared.labelled(TEST)
    counted = grid.to_rows(wanted)
    answers = grid.to_rows(predictor.answers(grid.segments, wanted))[counted]
    rows = scored_rows(predictor.config, prepared.table, counted)
    predicted = predictor.name(answers[:, :-1])
    collector = predictor.collector()
    collector.add(rows.series, rows.times, answers[:, :-1])
    alarms = alarm_scores(rows, collector.alarms())
    return {
        "macro_f1": macro_f1(rows.truth, predicted),
        "recall": alarms["recall"],
        "precision": alarms["precision"],
        "false_alarms_per_series_day": alarms["false_alarms_per_series_day"],
        "unknown": float((answers[:, -1] > 1).mean()),
        "f1": {name: entry["f1"] for name, entry in per_class(rows.truth, predicted, predictor.classes).items()},
    }


def as_lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """The subsets as a table."""
    rows = [
        (
            one["metrics"],
            *(score(one[key]) for key in ("macro_f1", "recall", "precision")),
            f"{one['false_alarms_per_series_day']:.0f}",
            score(one["unknown"]),
        )
        for one in found
    ]
    return table(("metrics", "macro-F1", "alarms: recall", "precision", "false a day", "unknown"), rows)


if __name__ == "__main__":
    run_command(main)
