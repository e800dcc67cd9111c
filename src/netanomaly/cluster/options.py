"""What `scripts/score_spark.py` and `scripts/score_ray.py` share: options, and errors for people."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

from netanomaly.cluster.tasks import Job
from netanomaly.commands.shared import bundle_directory
from netanomaly.ending import ended
from netanomaly.errors import ConfigError, EngineError, NetanomalyError
from netanomaly.terminal import log_to_stderr

Score = Callable[[list[str], Path, Path, Job], None]
"""Files, bundle, directory to write, and how."""


def parser(description: str) -> argparse.ArgumentParser:
    """The options that do not depend on the engine."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    options.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    options.add_argument("files", nargs="+", help="CSV, CSV.gz or Parquet files, or patterns, that all workers see")
    options.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of Parquet files to write")
    options.add_argument("--data", type=Path, metavar="FILE.yaml", help="its section 'data' says how rows are written")
    options.add_argument("--set", action="append", default=[], metavar="A.B=VALUE", help="change a key of the config")
    options.add_argument(
        "--part-rows",
        type=int,
        default=Job.part_rows,
        metavar="N",
        help="series are cut by time into parts of so many intervals, a task each (default %(default)s); 0: not",
    )
    options.add_argument(
        "--shares", type=int, default=Job.shares, metavar="N", help="files to write to (default %(default)s)"
    )
    options.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return options


def run(options: argparse.Namespace, score: Score) -> int:
    """Score as the options say; the exit code, as of `netanomaly`."""
    log_to_stderr(logging.INFO)
    return ended(lambda: _run(options, score), debug=options.debug)


def _run(options: argparse.Namespace, score: Score) -> None:
    for option in ("part_rows", "shares"):
        least, given = int(option == "shares"), getattr(options, option)
        if given < least:
            raise ConfigError(f"--{option.replace('_', '-')} {given}: give {least} or more")
    bundle, job = bundle_directory(options.bundle), _job(options)
    try:
        score(options.files, bundle, options.out, job)
    except NetanomalyError:
        raise
    except Exception as error:
        if type(error).__module__ == "builtins" and isinstance(error, (OSError, MemoryError)):
            raise  # of this process, not a task's, which Ray dresses up as the like
        raise EngineError(f"the engine failed: {' '.join(str(error).split())[:500] or type(error).__name__}") from error


def _job(options: argparse.Namespace) -> Job:
    from netanomaly.commands.shared import overrides

    return Job(tuple(overrides(options)), options.part_rows, options.shares)
