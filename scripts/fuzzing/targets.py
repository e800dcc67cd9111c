"""What is fuzzed: functions that take any bytes and raise nothing but the package's own errors."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from netanomaly.bundle_files import CONTENT, MANIFEST, WEIGHTS
from netanomaly.config import parse_config
from netanomaly.data.cells import CellFormat
from netanomaly.data.incidents import label_rows
from netanomaly.data.ingest import NO_PART, InputFormat, Table, join_tables, read_table, read_tables, table_of_frames
from netanomaly.data.schema import Metric
from netanomaly.data.timestamps import TimeFormat, parse_times
from netanomaly.errors import NetanomalyError
from netanomaly.files import sha256
from netanomaly.incident_files import read_maintenance
from netanomaly.predictor import Predictor, load
from netanomaly.streaming import StreamingPredictor
from netanomaly.watch.loop import watch
from netanomaly.yaml_reader import parse_yaml

ROOT = Path(__file__).parents[2]
BUNDLES = sorted((ROOT / "tests" / "fixtures").glob("bundle_v?"))

Run = Callable[[bytes], None]


@dataclass(frozen=True)
class Target:
    """Something to fuzz.

    Attributes:
        make: what runs one input, given a directory of its own.
        seeds: inputs to start from.
    """

    make: Callable[[Path], Run]
    seeds: Sequence[bytes]


def _hold(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


_CSV = InputFormat(
    metrics=(Metric("rtt", "rtt", "ms"), Metric("loss", "loss", "%"), Metric("octets", "octets", "byte", "counter")),
    time_columns=("time",),
    times=TimeFormat(),
    series_columns=("site", "link"),
    label="label",
)
_FORMS: tuple[tuple[str, InputFormat], ...] = (
    ("a.csv", _CSV),
    ("a.csv", replace(_CSV, cells=CellFormat(skip_bad_lines=True))),
    ("a.csv", replace(_CSV, cells=CellFormat(separator=";", decimal=",", missing=("-", "")))),
    ("a.csv", replace(_CSV, cells=CellFormat(separator="\t", encoding="utf-16"))),
    ("a.csv", replace(_CSV, times=TimeFormat("epoch", "ms"), cells=CellFormat(encoding="latin-1", missing=("-1",)))),
    ("a.csv", replace(_CSV, times=TimeFormat("%d/%m/%Y %H:%M:%S", timezone="Europe/Berlin"), label=None)),
    ("a.csv.gz", replace(_CSV, series_columns=())),
    ("a.parquet", _CSV),
)
"""The first byte of an input of `csv` says which of these it is read as."""

_HEAD, _ROWS = (
    "time,site,link,rtt,loss,octets,label\n",
    "2026-03-01T00:00:00Z,fra,a,1.5,0.5%,10,normal\n2026-03-01T00:00:01Z,fra,a,,1,20,\n",
)
_QUOTED = '2026-03-01T00:00:02.5+01:00,"f,""r\na",b,1e3,NaN,30,"None"\n'


def _csv_seeds() -> list[bytes]:
    plain = _HEAD + _ROWS
    dotted = (_HEAD + _ROWS.replace("%", "")).replace(",", ";").replace(".", ",")
    epochs = _HEAD + "1772323200000,fra,a,-1,5,10,caf\xe9\n1772323201000,fra,a,2,5,10,x\n"
    german = _HEAD.replace(",label", "") + "01/03/2026 00:00:00,fra,a,1,2,3\n25/10/2026 03:30:00,fra,a,1,2,3\n"
    table = io.BytesIO()
    pd.read_csv(io.StringIO(plain)).to_parquet(table)
    contents = [
        plain.encode(),
        (plain + "x,y\n" + _QUOTED).encode(),
        dotted.encode(),
        plain.replace(",", "\t").encode("utf-16"),
        epochs.encode("latin-1"),
        german.encode(),
        gzip.compress(plain.encode(), mtime=0),
        table.getvalue(),
        (plain + _QUOTED).encode("utf-8-sig").replace(b"\n", b"\r\n"),
    ]
    return [b"%d%b" % (number % len(_FORMS), content) for number, content in enumerate(contents)]


def _read_csv(directory: Path) -> Run:
    """The whole file and the same in pieces of three lines: the same rows, or an error from both."""

    def run(data: bytes) -> None:
        name, form = _FORMS[data[0] % len(_FORMS) if data else 0]
        path = directory / name
        path.write_bytes(data[1:])
        whole = _outcome(lambda: read_table({path: NO_PART}, form))
        parts = _outcome(lambda: join_tables(list(read_tables([path], form, 3))))
        if isinstance(whole, Table) and isinstance(parts, Table):
            np.testing.assert_array_equal(whole.times, parts.times)
            np.testing.assert_array_equal(whole.values, parts.values)
            np.testing.assert_array_equal(whole.series, parts.series)
            np.testing.assert_array_equal(whole.labels, parts.labels)
            _hold(not np.isinf(whole.values).any(), "a number is infinite")
            whole.where(len(whole) - 1)
            return
        is_alike = not isinstance(whole, Table) and not isinstance(parts, Table)
        is_alike |= "offset" in str(whole)  # which are compared with each other in each piece
        # a damaged Parquet file may have its damage in a column that pieces leave out
        _hold(is_alike or name.endswith(".parquet"), f"read whole: {whole!r:.200}; in pieces: {parts!r:.200}")
        if not isinstance(whole, Table):
            raise whole

    return run


def _outcome(read: Callable[[], Table]) -> Table | NetanomalyError:
    try:
        return read()
    except NetanomalyError as error:
        return error


_YAML = (
    b"a: 1\nb: [1e-3, no, 12:30, ~, 0x10]\nc: &x {d: 'e'}\nf:\n  <<: *x\n  g: |\n    text\n",
    b"? [a, b]\n: !!binary aGVsbG8=\n--- \n...\n",
    b"{a: &a [*a]}\n",
    b'%YAML 1.1\n---\n- !!float .nan\n- 2026-03-01\n- "\\x1b\\u2028"\n',
)


def _configs() -> list[bytes]:
    """The configurations of the repository, without their comments: short inputs are mutated better."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "configs").rglob("*.yaml"))]
    lines = [[line.partition(" #")[0].rstrip() for line in text.splitlines()] for text in texts]
    return ["\n".join(line for line in some if line and not line.startswith("#")).encode() for some in lines]


def _parse_yaml(directory: Path) -> Run:
    """What is a section can be written and read again."""

    def run(data: bytes) -> None:
        tree = parse_yaml(data.decode("utf-8", "replace"), "a.yaml")
        if isinstance(tree, dict):
            _hold(len(json.dumps(tree, default=str)) < 2**26, "a few bytes become many")

    return run


def _parse_config(directory: Path) -> Run:
    """A config that is accepted is a fixed point."""

    def run(data: bytes) -> None:
        tree = parse_yaml(data.decode("utf-8", "replace"), "a.yaml")
        config = parse_config(tree if isinstance(tree, dict) else {"data": tree}, "a.yaml")
        _hold(parse_config(parse_yaml(config.to_yaml(), "again"), "again") == config, "another config is written")

    return run


_KINDS = (CONTENT, WEIGHTS, MANIFEST)


def _bundle_seeds() -> list[bytes]:
    return [
        b"%d%d" % (number, kind) + (bundle / name).read_bytes()
        for number, bundle in enumerate(BUNDLES)
        for kind, name in enumerate(_KINDS)
    ]


def _load_bundle(directory: Path) -> Run:
    """A committed bundle with one file of the input's, and a manifest that fits: what a forger writes."""

    def run(data: bytes) -> None:
        which, kind, content = data[:1] or b"0", data[1:2] or b"0", data[2:]
        original, name = BUNDLES[which[0] % len(BUNDLES)], _KINDS[kind[0] % len(_KINDS)]
        for file in _KINDS:
            (directory / file).write_bytes(content if file == name else (original / file).read_bytes())
        if name != MANIFEST:
            version = json.loads((original / MANIFEST).read_text(encoding="utf-8"))["format"]
            files = {
                file: {"bytes": (directory / file).stat().st_size, "sha256": sha256(directory / file)}
                for file in (WEIGHTS, CONTENT)
            }
            (directory / MANIFEST).write_text(json.dumps({"format": version, "files": files}), encoding="utf-8")
        load(directory, device="cpu")

    return run


_INCIDENTS = (
    b"site,link,start,end,label\nfra,a,2026-03-01T00:00:00Z,2026-03-01T00:00:05Z,congestion\n",
    b'site,link,start,end,label\nfra,a,2026-03-01T00:00:00Z,2026-03-01T00:00:05Z,"x ""y"""\n'
    b"fra,a,2026-03-01T00:00:03Z,2026-03-01T00:00:04Z,loss\n,,2026-03-01 00:00:05+01:00,2026-03-02T00:00:06Z,b\n",
)


def _read_incidents(directory: Path) -> Run:
    """A list of incidents, as the labels of some rows and as planned work."""
    times = pd.date_range("2026-03-01", periods=8, freq="s", tz="UTC")
    rows = pd.DataFrame({"time": times, "site": "fra", "link": "a", "rtt": 1.0, "loss": 0.0, "octets": 1})
    form = _CSV.without_label()
    table = table_of_frames([(rows, NO_PART, "rows")], form)

    def run(data: bytes) -> None:
        path = directory / "incidents.csv"
        path.write_bytes(data)
        planned = _outcome_of(lambda: read_maintenance(path, form).of("fra/a"))
        labelled = _outcome_of(lambda: label_rows(table, path, form, "normal"))
        for error in (planned, labelled):
            if error is not None:
                raise error

    return run


def _outcome_of(read: Callable[[], object]) -> NetanomalyError | None:
    try:
        read()
    except NetanomalyError as error:
        return error
    return None


_TIMES = (
    TimeFormat(),
    TimeFormat(mixed_offsets=True),
    TimeFormat(timezone="Europe/Berlin"),
    TimeFormat("epoch", "s"),
    TimeFormat("elapsed", "ns"),
    TimeFormat("%d/%m/%Y %H:%M", timezone="America/New_York"),
    TimeFormat("%Y-%m-%dT%H:%M:%S%z"),
    TimeFormat("epoch", "us"),
)
_TIME_TEXTS = (
    b"2026-03-01T00:00:00Z\n2026-03-01T00:00:01Z\n",
    b"2026-03-01t00:00:00.123456789z\n2026-12-31 23:59:59+01:00\n",
    b"2026-03-29T02:30:00\n2026-10-25T02:30:00\n",
    b"1772323200\n1772323200.5\n-1e3\n",
    b"-9223372036854775807\n0\n",
    b"01/03/2026 00:00\n08/03/2026 02:30\n",
    b"2026-03-01T00:00:00+0130\n1677-09-21T00:12:43-2359\n",
    b"1772323200000000\n99999999999999999999\n",
)


def _parse_times(directory: Path) -> Run:
    """Times of a declared format lie in the years that nanoseconds hold."""

    def run(data: bytes) -> None:
        form = _TIMES[data[0] % len(_TIMES) if data else 0]
        texts = pd.Series(data[1:].decode("utf-8", "replace").split("\n"), dtype="str")
        found = parse_times(texts, form, "time", lambda row: f"line {row + 1}")
        _hold(found.dtype == np.int64 and len(found) == len(texts), "not a time for each text")

    return run


def _watch_seeds() -> list[bytes]:
    head = b"timestamp,link,rtt_ms,throughput_bps,loss_ratio,label\n"
    lines = [b"2026-03-01T00:00:%02dZ,%b,%d.5,1e6,0.01,normal\n" % (n, b"ab"[n % 2 : n % 2 + 1], n) for n in range(24)]
    odd = b'2026-03-01T00:00:01Z,"a\nb",1,2,3,x\n2026-03-01T00:01:00Z,a,\xff,2,3,\n2026-03-01T00:01:01Z,a,NaN,,,\n'
    return [head + b"".join(lines), b"\xef\xbb\xbf" + head + odd + b"".join(lines[:5]), head.replace(b"\n", b"\r\n")]


def _watch_lines(directory: Path) -> Run:
    """Lines of which each is answered as JSON or left out."""
    predictor: Predictor = load(BUNDLES[-1], device="cpu")

    def run(data: bytes) -> None:
        path = directory / "lines.csv"
        path.write_bytes(data)
        told = io.StringIO()
        with redirect_stdout(told):
            watch(StreamingPredictor(predictor), path)
        answers = told.getvalue().split("\n")
        _hold(answers.pop() == "" and len(answers) <= data.count(b"\n") + data.count(b"\r") + 1, "too many answers")
        for answer in answers:
            _hold({"series", "timestamp", "label"} <= json.loads(answer).keys(), "no answer")

    return run


TARGETS: dict[str, Target] = {
    "csv": Target(_read_csv, _csv_seeds()),
    "yaml": Target(_parse_yaml, [*_YAML, *_configs()]),
    "config": Target(_parse_config, _configs()),
    "bundle": Target(_load_bundle, _bundle_seeds()),
    "incidents": Target(_read_incidents, _INCIDENTS),
    "timestamps": Target(_parse_times, [b"%d%b" % (n, text) for n, text in enumerate(_TIME_TEXTS)]),
    "watch-lines": Target(_watch_lines, _watch_seeds()),
}
"""By the names that the command line takes."""
