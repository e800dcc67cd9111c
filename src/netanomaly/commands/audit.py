"""`netanomaly audit`: training labels that models of the other series find hard to believe."""

from __future__ import annotations

import argparse
from pathlib import Path

from netanomaly.commands.shared import Shared, check_apart, check_place, overrides
from netanomaly.errors import ConfigError
from netanomaly.terminal import tell


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: Shared) -> None:
    """Add the command to the parser."""
    audit = commands.add_parser(
        "audit",
        allow_abbrev=False,
        parents=[shared.common, shared.rooted, shared.text],
        help="list training labels that models of the other series find unlikely",
    )
    audit.add_argument("config", type=Path, help="YAML file, as for train")
    audit.add_argument(
        "--folds", type=int, default=4, metavar="N", help="trainings, each without a part of the series (default: 4)"
    )
    audit.add_argument("--top", type=int, default=10, metavar="N", help="findings of each kind to print (default: 10)")
    audit.add_argument("--out", type=Path, metavar="FILE.csv", help="all findings")
    audit.add_argument("--rows", type=Path, metavar="FILE.csv", help="all rows, the least likely label first")
    audit.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    import numpy as np

    from netanomaly.audit.cross_fit import cross_fit
    from netanomaly.audit.findings import find
    from netanomaly.audit.tables import finding_table, findings_text, row_table
    from netanomaly.build import build_device, build_input_format
    from netanomaly.config import load_config
    from netanomaly.csv_lines import csv_table
    from netanomaly.evaluation.metrics import macro_f1
    from netanomaly.files import write_text
    from netanomaly.prepare import prepare

    for name, least in (("folds", 2), ("top", 1)):
        if getattr(options, name) < least:
            raise ConfigError(f"--{name} {getattr(options, name)}: give {least} or more")
    for option in ("out", "rows"):
        check_place(getattr(options, option), f"--{option}")
    config = load_config(options.config, overrides(options))
    root = Path(config.data.root)
    read = [root / name for name in (*config.data.files, config.data.incidents) if name]
    check_apart({"--out": options.out, "--rows": options.rows}, [options.config, *read])
    prepared = prepare(config)
    given = cross_fit(prepared, options.folds, build_device(prepared.config.device))
    times = build_input_format(prepared.config.data).times
    found = finding_table(find(given), times, given.rows.interval_ns)
    judged = f"{len(given.rows)} labelled rows judged by models that do not know their series"
    why = "nothing measured, or no other series has their label"
    left = f"; {given.unjudged} left out: {why}" if given.unjudged else ""
    names = np.array(given.classes, dtype=object)[given.probabilities.argmax(axis=1)]
    own = macro_f1(given.rows.truth, names)
    trust = f"macro-F1 of these models on these labels: {own:.3f}; the lower, the less there is to go by"
    tell(f"{judged}{left}\n{trust}\n\n{findings_text(found, options.top)}")
    if options.out is not None:
        write_text(options.out, csv_table(found, raw_text=options.raw_text))
        tell(f"\nfindings: {options.out}")
    if options.rows is not None:
        write_text(options.rows, csv_table(row_table(given, times), raw_text=options.raw_text))
        tell(f"\nrows: {options.rows}")
