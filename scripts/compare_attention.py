"""Train the choices of the sequence model on the bundled measurements and write the table of docs/attention.md.

    python scripts/compare_attention.py --out runs/compare_attention.json          # continues where it stopped
    python scripts/compare_attention.py --out runs/compare_attention.json --choices default "score: distance" --seeds 0
    python scripts/compare_attention.py --out runs/compare_attention.json --table docs/attention.md   # only the table

Each choice changes the lines of its name in configs/quickstart.yaml and is trained with every seed, on one CPU thread;
macro-F1 is that of the two test links. Speed is measured when all are trained, on a machine that should do nothing
else: scoring every row of those links, channels ready, fresh weights, one thread, median of three rounds. The language
models need the extra `lm` and `sh scripts/fetch_minilm.sh`; they train as configs/language_model.yaml says.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.one_block import EARLY_STOPPING, ONE_BLOCK  # noqa: E402

from netanomaly import load_config, train  # noqa: E402
from netanomaly.build import build_spans, resolve_model, threads  # noqa: E402
from netanomaly.build_members import build_model  # noqa: E402
from netanomaly.bundle import load_bundle  # noqa: E402
from netanomaly.config import Config  # noqa: E402
from netanomaly.data.batches import channel_segment  # noqa: E402
from netanomaly.data.channels import Channels  # noqa: E402
from netanomaly.data.splits import TEST  # noqa: E402
from netanomaly.files import write_json, write_text  # noqa: E402
from netanomaly.model.language_model import read_architecture  # noqa: E402
from netanomaly.prepare import prepare  # noqa: E402
from netanomaly.training.engine import segment_logits  # noqa: E402

LOOK_UP, LANGUAGE = ROOT / "configs" / "quickstart.yaml", ROOT / "configs" / "language_model.yaml"
BEGIN, END = "<!-- comparison: begin -->", "<!-- comparison: end -->"
ROUNDS = 3
RANDOM = "language model, random weights"
STRIDE = "training.stride=8"
"""For choices in which all rows of a window ask: they learn from every eighth row, or they would take minutes each."""

CHOICES: dict[str, list[str]] = {
    "default": [],
    "default, stride 8": [STRIDE],
    "score: distance": ["score=distance"],
    "score: distance, normalise: none": ["score=distance", "normalise=none"],
    "scale: init": ["scale=init"],
    "scale: 1.0 (no division)": ["scale=1.0"],
    "positions: none": ["positions=none"],
    "positions: linear": ["positions=linear"],
    "positions: linear_unit": ["positions=linear_unit"],
    "positions: binary": ["positions=binary"],
    "positions: sine": ["positions=sine"],
    "positions: learned": ["positions=learned"],
    "positions: rotary": ["positions=rotary"],
    "positions: relative_bias": ["positions=relative_bias"],
    "positions: relative_key": ["positions=relative_key"],
    "add_to: input": ["positions.add_to=input"],
    "n_heads: 1": ["n_heads=1"],
    "n_kv_heads: 1 (MQA)": ["n_kv_heads=1"],
    "n_kv_heads: 2 (GQA)": ["n_kv_heads=2"],
    "local: 16": ["local=16"],
    "patch: 4": ["patch=4"],
    "feed_forward: none": ["feed_forward=none"],
    "feed_forward: relu": ["feed_forward=relu"],
    "feed_forward: gelu": ["feed_forward=gelu"],
    "depth: 2": ["depth=2"],
    "depth: 2, share_weights": ["depth=2", "share_weights=true"],
    "read_out: cls": ["model.read_out=cls"],
    "read_out: mean, stride 8": ["model.read_out=mean", STRIDE],
    "read_out: attention, stride 8": ["model.read_out=attention", STRIDE],
    "depth: 2, memory: blocks, stride 8": ["depth=2", "memory=blocks", STRIDE],
    "depth: 2, memory: blocks, mask: causal, stride 8": ["depth=2", "memory=blocks", "mask=causal", STRIDE],
    "language model, pretrained": ["train=all"],
    "language model, pretrained and frozen": ["train=head", "training.learning_rate=2e-3"],
    RANDOM: [],
}


def main() -> None:
    """Train what is not in the results yet, measure speeds, write the table."""
    options = _options()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    results: dict[str, Any] = {"runs": {}, "windows_per_s": {}}
    if options.out.exists():
        results = json.loads(options.out.read_text(encoding="utf-8"))
    if not options.table:
        names = options.choices or list(CHOICES)
        for name in names:
            for seed in options.seeds:
                if str(seed) not in results["runs"].setdefault(name, {}):
                    results["runs"][name][str(seed)] = found = run(name, seed)
                    print(f"{name}, seed {seed}: macro-F1 {found['macro_f1']:.3f}", flush=True)
                    write_json(options.out, results)
        if options.speed or set(names) - set(results["windows_per_s"]):
            results["windows_per_s"] |= speeds(names)
            write_json(options.out, results)
    table = as_table(results)
    print(table)
    if options.table:
        page = options.table.read_text(encoding="utf-8")
        if not results["runs"] or BEGIN not in page or END not in page.partition(BEGIN)[2]:
            raise SystemExit(f"no results in {options.out}, or no place for them in {options.table}: {BEGIN} ... {END}")
        before, _, rest = page.partition(BEGIN)
        _, _, after = rest.partition(END)
        write_text(options.table, f"{before}{BEGIN}\n{table}\n{END}{after}")


def run(name: str, seed: int) -> dict[str, float]:
    """Train one choice with one seed; how right it is."""
    with tempfile.TemporaryDirectory() as directory:
        train(_config(name, f"seed={seed}", f"run_dir={json.dumps(directory)}"), overwrite=True)
        report = json.loads((Path(directory) / "evaluation.json").read_text(encoding="utf-8"))
        facts = load_bundle(Path(directory)).facts["training"]
        return {
            "macro_f1": report["macro_f1"],
            "validation_macro_f1": facts["validation_macro_f1"],
            "parameters": facts["parameters"],
        }


def speeds(names: Sequence[str]) -> dict[str, float]:
    """Windows of the test part that are scored in a second, median of rounds in which all choices take turns."""
    prepared = prepare(_config("default"))
    segments, config = prepared.grid.segments, prepared.config
    fitted = Channels.fit(
        [segment.values for segment in segments],
        [segment.valid for segment in segments],
        config.channels.kinds,
        build_spans(config).baselines,
    )
    pairs = zip(segments, prepared.labelled(TEST), strict=True)
    given = [channel_segment(segment, fitted) for segment, mask in pairs if mask.any()]
    windows = sum(len(segment.valid) for segment in given)
    models = {name: build_model(resolve_model(_config(name)), fitted.count, 9) for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    with threads(_config("default")):
        for _ in range(ROUNDS):
            for name, model in models.items():
                started = time.perf_counter()
                segment_logits(model, given, 9, model.history_rows, torch.device("cpu"))
                seconds[name].append(time.perf_counter() - started)
    return {name: windows / statistics.median(found) for name, found in seconds.items()}


def as_table(results: dict[str, Any]) -> str:
    """The results as Markdown, choices in their order."""
    lines = [
        "| choice | macro-F1, mean (seeds) | on validation | windows/s | parameters |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in [name for name in CHOICES if results["runs"].get(name)]:
        runs = [results["runs"][name][seed] for seed in sorted(results["runs"][name], key=int)]
        scores = " ".join(f"{found['macro_f1']:.3f}" for found in runs)
        mean, validation = (
            statistics.mean(found[key] for found in runs) for key in ("macro_f1", "validation_macro_f1")
        )
        speed = results["windows_per_s"].get(name)
        lines.append(
            f"| {name} | **{mean:.3f}** ({scores}) | {validation:.3f} | {_rounded(speed) if speed else ''} "
            f"| {runs[0]['parameters']:,} |"
        )
    return "\n".join(lines)


def _config(name: str, *changes: str) -> Config:
    """The configuration of a choice."""
    path, own = _described(name)
    recipe = EARLY_STOPPING if path == LOOK_UP else EARLY_STOPPING[:1]  # the other says itself when it stops
    return load_config(path, [*ONE_BLOCK, *recipe, *own, "threads=1", f"data.root={json.dumps(str(ROOT))}", *changes])


def _described(name: str) -> tuple[Path, list[str]]:
    """The YAML file and the changes of a choice, whole paths."""
    path = LANGUAGE if name.startswith("language model") else LOOK_UP
    if name == RANDOM:  # the same shape
        shape = json.dumps(read_architecture(ROOT / "models" / "minilm"))
        return path, ["model.sequence_model.path=null", f"model.sequence_model.architecture={shape}"]
    changes = [
        key if key.startswith(("model.", "training.")) else f"model.sequence_model.{key}" for key in CHOICES[name]
    ]
    if path == LANGUAGE:
        changes.append(f"model.sequence_model.path={json.dumps(str(ROOT / 'models' / 'minilm'))}")
    return path, changes


def _rounded(number: float) -> str:
    """Two figures: more would be noise."""
    return f"{float(f'{number:.2g}'):,.0f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json", help="results; what is there is kept")
    parser.add_argument("--choices", nargs="+", choices=CHOICES, metavar="NAME", help="default: all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--speed", action="store_true", help="measure speeds that are there again")
    parser.add_argument("--table", type=Path, metavar="FILE.md", help="train nothing; put the table into this page")
    return parser.parse_args()


if __name__ == "__main__":
    main()
