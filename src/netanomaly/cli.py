"""The command line: train, eval, predict, watch, convert. Parses and calls; everything else is in the library.

Exit codes: 0 done, 2 bad config or arguments (or a file that cannot be written), 3 bad data, 4 bad bundle,
5 training cannot go on, 130 interrupted.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from netanomaly import __version__
from netanomaly.allocator import keep_freed_memory
from netanomaly.errors import ConfigError, NetanomalyError

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(format="%(message)s", level=logging.WARNING if options.quiet else logging.INFO, force=True)
    command: Callable[[argparse.Namespace], None] = options.command
    keep_freed_memory()
    try:
        command(options)
    except NetanomalyError as error:
        if options.debug:
            raise
        print(f"netanomaly: {_one_line(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("netanomaly: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:  # a full disk, a directory in the place of a file ...
        if options.debug:
            raise
        print(f"netanomaly: {error.filename or 'writing'}: {error.strerror or error}", file=sys.stderr)
        return ConfigError.exit_code
    return 0


def _one_line(message: str) -> str:
    """A message that quotes a file may hold anything: no line breaks, no control characters, no end of it."""
    return "".join(character if character.isprintable() else "?" for character in message[:2000])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="netanomaly",
        allow_abbrev=False,
        description="Names the state of a network at every moment from windows of its metrics.",
        epilog="exit codes: 0 done, 2 bad config or arguments, 3 bad data, 4 bad bundle, 5 training cannot go on, "
        "130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"netanomaly {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    quiet = argparse.ArgumentParser(add_help=False)
    quiet.add_argument("--quiet", action="store_true", help="no progress: only results and what went wrong")
    quiet.add_argument("--debug", action="store_true", help="show the traceback of an error")

    common = argparse.ArgumentParser(add_help=False, parents=[quiet])
    common.add_argument("--set", action="append", default=[], metavar="A.B=VALUE", help="change a key of the config")
    common.add_argument("--device", choices=("auto", "cpu", "cuda"), help="where to compute (device)")

    rooted = argparse.ArgumentParser(add_help=False)
    rooted.add_argument("--data-root", metavar="DIR", help="where relative paths of the config start (data.root)")

    train = commands.add_parser(
        "train", allow_abbrev=False, parents=[common, rooted], help="learn from labelled rows, as a YAML file says"
    )
    train.add_argument("config", type=Path, help="YAML file; see configs/")
    train.add_argument("--run-dir", metavar="DIR", help="the directory to write (run_dir)")
    train.add_argument("--overwrite", action="store_true", help="replace a run that is there")
    train.set_defaults(command=_train)

    evaluate = commands.add_parser(
        "eval", allow_abbrev=False, parents=[common, rooted], help="score a trained bundle on labelled rows"
    )
    evaluate.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    evaluate.add_argument("files", nargs="*", help="labelled files; default: the test part of the bundle's data")
    evaluate.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="JSON to write; default: evaluation.json in the run, none for other files",
    )
    evaluate.set_defaults(command=_evaluate)

    predict = commands.add_parser("predict", allow_abbrev=False, parents=[common], help="label the rows of files")
    predict.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    predict.add_argument("files", nargs="+", help="CSV, CSV.gz or Parquet files, or patterns")
    predict.add_argument(
        "--out", type=Path, metavar="FILE", help="CSV, CSV.gz or Parquet to write; default: CSV to standard output"
    )
    predict.add_argument(
        "--chunk-rows",
        type=int,
        default=200_000,
        metavar="N",
        help="rows in memory at a time (default %(default)s): from file to file and chunk to chunk each series goes "
        "on in time; 0: all",
    )
    predict.set_defaults(command=_predict)

    watch = commands.add_parser(
        "watch", allow_abbrev=False, parents=[common], help="label CSV lines as they come, one JSON line each"
    )
    watch.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    watch.add_argument(
        "file", nargs="?", type=Path, help="CSV with a header, before any options; default: standard input"
    )
    watch.add_argument("--follow", action="store_true", help="wait for lines that are added to the file")
    watch.add_argument("--state", type=Path, metavar="FILE", help="go on from it if it is there; written at the end")
    watch.set_defaults(command=_watch)

    convert = commands.add_parser(
        "convert", allow_abbrev=False, parents=[quiet], help="pool a bundle's heads of keys and values into fewer"
    )
    convert.add_argument("bundle", type=Path, help="directory of a run, or its YAML file")
    convert.add_argument("--kv-heads", type=int, required=True, metavar="N", help="how many are left: 1 is multi-query")
    convert.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory to write; must not exist")
    convert.set_defaults(command=_convert)
    return parser


def _overrides(options: argparse.Namespace) -> list[str]:
    """The options that stand for keys of the config, as --set does."""
    import json

    given = list(options.set)
    for option, key in (("data_root", "data.root"), ("device", "device"), ("run_dir", "run_dir")):
        value = getattr(options, option, None)
        if value is not None:
            given.append(f"{key}={json.dumps(value)}")
    return given


def _train(options: argparse.Namespace) -> None:
    from netanomaly.run import EVALUATION, train

    predictor = train(options.config, overrides=_overrides(options), overwrite=options.overwrite)
    directory = Path(predictor.config.run_dir)
    _print_evaluation(directory / EVALUATION)
    print(f"\nbundle: {directory}")


def _evaluate(options: argparse.Namespace) -> None:
    from netanomaly.evaluation.report import report_text
    from netanomaly.files import write_json
    from netanomaly.predictor import load
    from netanomaly.run import EVALUATION
    from netanomaly.scoring import evaluate

    directory = _bundle_directory(options.bundle)
    predictor = load(directory, overrides=_overrides(options))
    out = options.out or (None if options.files else directory / EVALUATION)
    _check_place(out)
    report = evaluate(predictor, files=options.files)
    print(report_text(report))
    if out is not None:
        write_json(out, report)
        print(f"\nevaluation: {out}")


def _predict(options: argparse.Namespace) -> None:
    from netanomaly.predictions import SUFFIXES, label_files
    from netanomaly.predictor import load

    if options.out is not None and not str(options.out).endswith(SUFFIXES):
        raise ConfigError(f"--out {options.out}: write a {', a '.join(SUFFIXES)}")
    if options.chunk_rows < 0:
        raise ConfigError(f"--chunk-rows {options.chunk_rows}: give a number of rows, or 0 for all at once")
    _check_place(options.out)
    if options.out is not None and any(
        Path(file).exists() and options.out.resolve() == Path(file).resolve() for file in options.files
    ):
        raise ConfigError(f"--out {options.out}: is one of the files to read; it would be replaced")
    predictor = load(_bundle_directory(options.bundle), overrides=_overrides(options))
    rows = label_files(predictor, options.files, options.out, options.chunk_rows)
    if options.out is not None:
        logging.getLogger(__name__).info("%d rows labelled: %s", rows, options.out)


def _watch(options: argparse.Namespace) -> None:
    from netanomaly.predictor import load
    from netanomaly.streaming import StreamingPredictor
    from netanomaly.watch import watch

    if options.follow and options.file is None:
        raise ConfigError("--follow: name the file to follow; standard input is read to its end anyway")
    stream = StreamingPredictor(load(_bundle_directory(options.bundle), overrides=_overrides(options)))
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the state is saved
    try:
        watch(stream, options.file, follow=options.follow, state=options.state)
    finally:
        signal.signal(signal.SIGTERM, before)


def _convert(options: argparse.Namespace) -> None:
    from netanomaly.bundle import load_bundle, save_bundle
    from netanomaly.grouping import group_heads

    if options.out.exists():
        raise ConfigError(f"--out {options.out}: exists already; name another directory")
    _check_place(options.out)
    bundle = group_heads(load_bundle(_bundle_directory(options.bundle)), options.kv_heads)
    save_bundle(options.out, bundle)
    print(f"bundle: {options.out}; its answers differ from those of {options.bundle}: score it with netanomaly eval")


def _check_place(out: Path | None) -> None:
    """Raise a ConfigError if a file cannot be written there: better before the work than after it."""
    if out is None:
        return
    if out.is_dir():
        raise ConfigError(f"--out {out}: is a directory; name a file in it")
    parent = next(place for place in out.absolute().parents if place.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ConfigError(f"--out {out}: cannot write to {parent}")


def _bundle_directory(path: Path) -> Path:
    """The run's directory, from itself or from the YAML file that it was trained with."""
    if path.suffix not in (".yaml", ".yml"):
        return path
    from netanomaly.config import load_config

    return Path(load_config(path).run_dir)


def _print_evaluation(path: Path) -> None:
    import json

    from netanomaly.evaluation.report import report_text

    if path.exists():
        print(report_text(json.loads(path.read_text(encoding="utf-8"))))
        print(f"\nevaluation: {path}")
    else:
        print("no test part in data.split: nothing was evaluated")
