"""`netanomaly predict`: label the rows of files, and tell their incidents."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from netanomaly.commands.shared import Shared, bundle_directory, bundle_files, check_apart, check_place, overrides
from netanomaly.errors import ConfigError, DataError
from netanomaly.starter import is_starter
from netanomaly.terminal import tell


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: Shared) -> None:
    """Add the command to the parser."""
    predict = commands.add_parser(
        "predict",
        allow_abbrev=False,
        parents=[shared.common, shared.written, shared.text],
        help="label the rows of files",
    )
    predict.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    predict.add_argument("files", nargs="+", help="CSV, CSV.gz or Parquet files, or patterns")
    predict.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="CSV, CSV.gz or Parquet to write; default: CSV to standard output, nothing with --incidents",
    )
    predict.add_argument(
        "--chunk-rows",
        type=int,
        default=200_000,
        metavar="N",
        help="rows in memory at a time (default %(default)s): from file to file and chunk to chunk each series goes "
        "on in time; 0: all",
    )
    predict.add_argument(
        "--incidents", type=Path, metavar="FILE", help="CSV or JSON to write: what happened, where, from when to when"
    )
    predict.add_argument(
        "--reasons", action="store_true", help="with --incidents: the metrics that carried each; reads the files again"
    )
    predict.add_argument(
        "--maintenance",
        type=Path,
        metavar="FILE",
        help="CSV with the series columns (empty: all series), start, end: what is over by then is no incident",
    )
    predict.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from netanomaly.alarm_reasons import reasons_of_files
    from netanomaly.alarms.maintenance import suppress
    from netanomaly.build import build_input_format
    from netanomaly.incident_files import (
        incident_table,
        incidents_text,
        read_maintenance,
        tell_unknown_series,
        write_incidents,
    )
    from netanomaly.predictions import STANDARD_OUTPUT, SUFFIXES, label_files
    from netanomaly.predictor import load

    if options.out is not None and not str(options.out).endswith(SUFFIXES):
        raise ConfigError(f"--out {options.out}: write a {', a '.join(SUFFIXES)}")
    if options.chunk_rows < 0:
        raise ConfigError(f"--chunk-rows {options.chunk_rows}: give a number of rows, or 0 for all at once")
    check_place(options.out)
    _check_incidents(options)
    outputs = {"--out": options.out, "--incidents": options.incidents}
    directory = bundle_directory(options.bundle)
    check_apart(outputs, [*options.files, options.maintenance, options.data, *bundle_files(directory)])
    predictor = load(directory, overrides=overrides(options))
    form = build_input_format(predictor.config.data)
    planned = None if options.maintenance is None else read_maintenance(options.maintenance, form)
    collector = None if options.incidents is None else predictor.collector()
    nowhere = None if collector is not None else STANDARD_OUTPUT  # whoever asks for incidents does not want all rows
    try:
        place, raw_text = options.out or nowhere, options.raw_text
        rows = label_files(predictor, options.files, place, options.chunk_rows, collector, raw_text=raw_text)
    except DataError as error:
        if options.data is not None or not is_starter(options.bundle):
            raise
        how = f"netanomaly inspect {options.files[0]} --for starter --write-config FILE.yaml"
        raise DataError(f"{error}; to say how your rows are written: {how}, then --data FILE.yaml") from error
    if options.out is not None:
        logging.getLogger(__name__).info("%d rows labelled: %s", rows, options.out)
    if collector is not None:
        alarms, suppressed = collector.alarms(), 0
        if planned is not None:
            tell_unknown_series(planned, collector.series, options.maintenance)
            alarms, suppressed = suppress(alarms, planned)
        found = incident_table(alarms, form.times, collector.interval_ns)
        write_incidents(found, options.incidents, raw_text=raw_text)
        if options.reasons:  # they take longest: what is known is written before
            why = reasons_of_files(predictor, options.files, alarms, options.chunk_rows)
            found = incident_table(alarms, form.times, collector.interval_ns, why)
            write_incidents(found, options.incidents, raw_text=raw_text)
        tell(incidents_text(found))
        also = f", {suppressed} more in planned maintenance" if planned else ""
        logging.getLogger(__name__).info("%d incidents%s: %s", len(alarms), also, options.incidents)


def _check_incidents(options: argparse.Namespace) -> None:
    from netanomaly.incident_files import SUFFIXES

    if options.incidents is None:
        for option in ("maintenance", "reasons"):
            if getattr(options, option):
                raise ConfigError(f"--{option}: is about incidents; give --incidents FILE as well")
        return
    if options.incidents.suffix not in SUFFIXES:
        raise ConfigError(f"--incidents {options.incidents}: write a {' or '.join(SUFFIXES)}")
    check_place(options.incidents, "--incidents")
