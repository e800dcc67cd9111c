"""`netanomaly predict`: label the rows of files, and tell their incidents."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from netanomaly.commands.from_prometheus import OPTION, add_prometheus, is_asked, moment, prometheus_tables
from netanomaly.commands.shared import Shared, bundle_directory, bundle_files, check_apart, check_place, overrides
from netanomaly.errors import ConfigError, DataError
from netanomaly.starter import is_starter
from netanomaly.terminal import tell

if TYPE_CHECKING:
    from netanomaly.alarms.maintenance import Maintenance
    from netanomaly.alarms.raising import AlarmCollector, Alarms
    from netanomaly.data.ingest import Table
    from netanomaly.predictor import Predictor
    from netanomaly.reason import Reason


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: Shared) -> None:
    """Add the command to the parser."""
    predict = commands.add_parser(
        "predict",
        allow_abbrev=False,
        parents=[shared.common, shared.written, shared.text],
        help="label the rows of files",
    )
    predict.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    files = predict.add_argument("files", nargs="+", default=[], help="CSV, CSV.gz or Parquet files, or patterns")
    files.required = False  # rows may come from Prometheus; with nargs "*", files behind an option would not be found
    add_prometheus(predict)
    predict.add_argument(
        "--start", metavar="TIME", help="of the rows from Prometheus: RFC 3339, or how long ago, like 6h"
    )
    predict.add_argument("--end", metavar="TIME", help="likewise (default: now)")
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
    from netanomaly.build import build_input_format
    from netanomaly.incident_files import read_maintenance
    from netanomaly.predictions import STANDARD_OUTPUT, SUFFIXES
    from netanomaly.predictor import load

    if options.out is not None and not str(options.out).endswith(SUFFIXES):
        raise ConfigError(f"--out {options.out}: write a {', a '.join(SUFFIXES)}")
    if options.chunk_rows < 0:
        raise ConfigError(f"--chunk-rows {options.chunk_rows}: give a number of rows, or 0 for all at once")
    check_place(options.out)
    _check_incidents(options)
    _check_source(options)
    outputs = {"--out": options.out, "--incidents": options.incidents}
    directory = bundle_directory(options.bundle)
    check_apart(outputs, [*options.files, options.maintenance, options.data, *bundle_files(directory)])
    predictor = load(directory, overrides=overrides(options))
    form = build_input_format(predictor.config.data)
    planned = None if options.maintenance is None else read_maintenance(options.maintenance, form)
    collector = None if options.incidents is None else predictor.collector()
    nowhere = None if collector is not None else STANDARD_OUTPUT  # whoever asks for incidents does not want all rows
    rows = _Rows(options, predictor)
    count = rows.label(options.out or nowhere, collector)
    if options.out is not None:
        logging.getLogger(__name__).info("%d rows labelled: %s", count, options.out)
    if collector is not None:
        _tell_incidents(options, collector, planned, rows)


def _tell_incidents(
    options: argparse.Namespace, collector: AlarmCollector, planned: Maintenance | None, rows: _Rows
) -> None:
    """Write the incidents, and show the last of them."""
    from netanomaly.alarms.maintenance import suppress
    from netanomaly.incident_files import incident_table, incidents_text, tell_unknown_series, write_incidents

    alarms, suppressed = collector.alarms(), 0
    if planned is not None:
        tell_unknown_series(planned, collector.series, options.maintenance)
        alarms, suppressed = suppress(alarms, planned)
    found = incident_table(alarms, rows.times, collector.interval_ns)
    write_incidents(found, options.incidents, raw_text=options.raw_text)
    if options.reasons:  # they take longest: what is known is written before
        found = incident_table(alarms, rows.times, collector.interval_ns, rows.reasons(alarms))
        write_incidents(found, options.incidents, raw_text=options.raw_text)
    tell(incidents_text(found))
    also = f", {suppressed} more in planned maintenance" if planned else ""
    logging.getLogger(__name__).info("%d incidents%s: %s", len(alarms), also, options.incidents)


class _Rows:
    """The rows to label: of files, or of Prometheus."""

    def __init__(self, options: argparse.Namespace, predictor: Predictor) -> None:
        from netanomaly.build import build_input_format
        from netanomaly.data.timestamps import TimeFormat

        self._options, self._predictor = options, predictor
        self._tables: Callable[[], Iterable[Table]] | None = None
        self.times = build_input_format(predictor.config.data).times
        if is_asked(options):
            asked, start, end = prometheus_tables(options, predictor), *_range(options)
            first = start // asked.step * asked.step
            self._tables, self.times = (lambda: asked.tables(first, end)), TimeFormat()

    def label(self, out: Path | None, collector: AlarmCollector | None) -> int:
        """Label and write them; how many there were."""
        from netanomaly.predictions import label_files, label_tables

        options = self._options
        if self._tables is not None:
            count = label_tables(self._predictor, self._tables(), out, collector, raw_text=options.raw_text)
            if not count:
                raise DataError(f"{OPTION}: no query has a sample between --start and --end")
            return count
        try:
            rows, raw_text = options.chunk_rows, options.raw_text
            return label_files(self._predictor, options.files, out, rows, collector, raw_text=raw_text)
        except DataError as error:
            if options.data is not None or not is_starter(options.bundle):
                raise
            how = f"netanomaly inspect {options.files[0]} --for starter --write-config FILE.yaml"
            raise DataError(f"{error}; to say how your rows are written: {how}, then --data FILE.yaml") from error

    def reasons(self, alarms: Alarms) -> list[Reason]:
        """Why each alarm was raised; the rows are read again."""
        from netanomaly.alarm_reasons import reasons_of_files, reasons_of_tables

        if self._tables is not None:
            return reasons_of_tables(self._predictor, self._tables(), alarms)
        return reasons_of_files(self._predictor, self._options.files, alarms, self._options.chunk_rows)


def _check_source(options: argparse.Namespace) -> None:
    """Files, or Prometheus with a range."""
    if is_asked(options):
        if options.files:
            raise ConfigError(f"{OPTION}: rows come from there; name no files")
        _range(options)
        return
    for option in ("start", "end"):
        if getattr(options, option) is not None:
            raise ConfigError(f"--{option}: is about rows from Prometheus; give {OPTION} URL as well")
    if not options.files:
        raise ConfigError(f"no rows: name files, or give {OPTION} URL")


def _range(options: argparse.Namespace) -> tuple[int, int]:
    """First and last moment, in nanoseconds since 1970."""
    if options.start is None:
        raise ConfigError(f"{OPTION}: give --start TIME, the moment of the first row, or how long ago that is")
    start, end = moment(options.start, "--start"), moment(options.end or "now", "--end")
    if end <= start:
        raise ConfigError(f"--end {options.end or 'now'}: is not after --start {options.start}")
    return start, end


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
