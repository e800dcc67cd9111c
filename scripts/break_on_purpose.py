"""Whether the tests see it when what they guard is broken: tests/breaks/*.yaml, a broken line at a time.

    python scripts/break_on_purpose.py
    python scripts/break_on_purpose.py --only proofs

An entry replaces a piece of text in one file of the package and names the tests that then have to fail. The named tests
first have to pass as things are. Then, for every entry, the package is copied, the copy is broken, and the tests run on
the copy, in the processes that they start as well. A test fails when an assertion does not hold or an error is raised;
one that cannot be collected, or a module that cannot be imported, proves nothing. The exit code is 1 if any break was
not seen by all of its tests.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any
from xml.etree import ElementTree  # reads what pytest has just written

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.bench.command import run_command  # noqa: E402

from netanomaly.errors import ConfigError  # noqa: E402
from netanomaly.evaluation.tables import table  # noqa: E402
from netanomaly.yaml_reader import read_yaml  # noqa: E402

BREAKS = ROOT / "tests" / "breaks"
SOURCE = "src/netanomaly/"
TIME_LIMIT = 120
"""Seconds for one test."""
NO_PROOF = ("ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "NameError")
"""Errors of a break that is itself written wrong."""
PASSED, FAILED, SKIPPED, HUNG, NOT_RUN = "passed", "failed", "skipped", "hung", "not run"

Outcomes = dict[str, str]
"""By test, as an entry names it: what became of it."""


@dataclass(frozen=True)
class Break:
    """One way to break the package, and the tests that have to see it."""

    area: str  # name of the file of entries, without its ending
    promise: str
    file: str  # from the root of the repository
    old: str  # stands once in the file
    new: str
    tests: tuple[str, ...]  # "tests/test_x.py::test_name"
    hangs: bool = False  # without end is how it fails

    def applied(self, text: str) -> str:
        """The text of its file, broken.

        Raises ConfigError if `old` does not stand there exactly once, or if what comes out is no Python.
        """
        if (count := text.count(self.old)) != 1:
            raise ConfigError(f"{self.area}.yaml: {self.promise}: {count} times in {self.file}: {self.old!r}")
        broken = text.replace(self.old, self.new)
        if self.file.endswith(".py"):
            try:
                same = ast.dump(ast.parse(broken)) == ast.dump(ast.parse(text))
            except SyntaxError as error:
                raise ConfigError(
                    f"{self.area}.yaml: {self.promise}: {self.file} would be no Python: {error}"
                ) from None
            if same:
                raise ConfigError(f"{self.area}.yaml: {self.promise}: changes nothing of {self.file}")
        return broken


def read_breaks(path: Path) -> list[Break]:
    """The entries of one file; ConfigError names the entry that is not of the form."""
    entries = read_yaml(path)
    if not isinstance(entries, list):
        raise ConfigError(f"{path}: holds no list of breaks")
    return [_entry(path, number, entry) for number, entry in enumerate(entries, 1)]


def _entry(path: Path, number: int, entry: Any) -> Break:
    texts = ("promise", "file", "old", "new")
    if not isinstance(entry, dict) or not {*texts, "tests"} <= set(entry) <= {*texts, "tests", "hangs"}:
        raise ConfigError(f"{path}: entry {number} needs promise, file, old, new and tests, and may have hangs")
    wrong = [key for key in texts if not isinstance(entry[key], str)]
    if wrong or not isinstance(entry["tests"], list) or not entry["tests"]:
        raise ConfigError(f"{path}: entry {number}: {', '.join(wrong) or 'tests'} is not text, or not a list of tests")
    if not entry["file"].startswith(SOURCE):
        raise ConfigError(f"{path}: entry {number}: {entry['file']} is not a file of {SOURCE}")
    named = {key: entry[key] for key in texts}
    return Break(path.stem, **named, tests=tuple(entry["tests"]), hangs=entry.get("hangs", False) is True)


def outcomes(report: str, tests: Iterable[str]) -> Outcomes:
    """What became of each test by the report (JUnit XML); one with parameters fails if it fails for any."""
    seen: dict[str, set[str]] = {test: set() for test in tests}
    for case in ElementTree.fromstring(report).iter("testcase"):  # noqa: S314
        place = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        for test in seen:
            if place == test or place.startswith(f"{test}["):
                seen[test].add(_outcome(case))
    order = (FAILED, HUNG, SKIPPED, PASSED)
    found: Outcomes = {}
    for test, states in seen.items():
        states = states - {SKIPPED} or states  # a skipped parameter does not hide the others
        found[test] = next((state for state in order if state in states), NOT_RUN)
    return found


def _outcome(case: ElementTree.Element) -> str:
    wrong = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
    if wrong is None:
        return PASSED if case.find("skipped") is None else SKIPPED
    message = wrong.get("message", "")
    if "Timeout (>" in message:
        return HUNG
    unproven = message.startswith("collection failure") or any(f"{name}:" in message for name in NO_PROOF)
    return NOT_RUN if unproven else FAILED


def run_tests(tests: Iterable[str], source: Path) -> Outcomes:
    """The tests are run on the package in `source`, in a process of their own."""
    tests = list(dict.fromkeys(tests))
    path = os.pathsep.join([str(source), *filter(None, [os.environ.get("PYTHONPATH")])])
    # CI: hypothesis draws the same examples every time. Nothing is written beside the sources that are tested.
    environment = {**os.environ, "PYTHONPATH": path, "CI": "1"}
    imported = [sys.executable, "-c", "import netanomaly; print(netanomaly.__file__)"]
    where = subprocess.run(imported, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    if not Path(where.stdout.strip()).is_relative_to(source):
        raise ConfigError(f"{where.stdout.strip()} is imported instead of the package in {source}")
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={TIME_LIMIT}"]
        command += [f"--basetemp={directory}/t", f"--junitxml={report}", *tests]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)  # noqa: S603
        if not report.is_file():
            raise ConfigError(f"pytest ended without a report:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return outcomes(report.read_text(encoding="utf-8"), tests)


@contextmanager
def broken_copy(entry: Break | None) -> Iterator[Path]:
    """A directory to import the package from, with the break of an entry in it."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory).resolve()
        shutil.copytree(
            ROOT / SOURCE, source / "netanomaly"
        )  # with what is compiled already: that is most of an import
        if entry is not None:
            file = source / Path(entry.file).relative_to("src")
            file.write_bytes(entry.applied(file.read_bytes().decode()).encode())
            Path(cache_from_source(str(file))).unlink(missing_ok=True)
        yield source


def judge(entry: Break) -> Outcomes:
    """What becomes of its tests when the package is broken."""
    with broken_copy(entry) as source:
        return run_tests(entry.tests, source)


def survived(entry: Break, found: Outcomes) -> list[str]:
    """The tests that did not see the break; one that is skipped on this machine says nothing."""
    enough = {FAILED, SKIPPED, *([HUNG] if entry.hangs else [])}
    return [test for test, state in found.items() if state not in enough]


def main() -> None:
    """Break, test, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="TEXT", help="entries with this text in their area, promise, file or tests")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="entries at a time (default: 1)")
    options = parser.parse_args()
    entries = [entry for path in sorted(BREAKS.glob("*.yaml")) for entry in read_breaks(path)]
    if options.only is not None:
        entries = [
            entry for entry in entries if options.only in f"{entry.area} {entry.promise} {entry.file} {entry.tests}"
        ]
    if not entries:
        raise ConfigError(f"{BREAKS}: no entry" + (f" with {options.only!r} in it" if options.only else ""))
    for entry in entries:
        entry.applied((ROOT / entry.file).read_bytes().decode())
    with broken_copy(None) as source:
        whole = run_tests((test for entry in entries for test in entry.tests), source)
    if bad := [f"{test} ({state})" for test, state in whole.items() if state not in (PASSED, SKIPPED)]:
        raise ConfigError("tests that have to pass before anything is broken: " + ", ".join(bad))
    rows, escaped = [], 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for entry, found in zip(entries, pool.map(judge, entries), strict=True):
            missed = survived(entry, found)
            escaped += bool(missed)
            verdict = "SURVIVED" if missed else "skipped" if set(found.values()) == {SKIPPED} else "seen"
            rows.append((entry.promise, entry.area, entry.file.removeprefix(SOURCE), verdict))
            print(f"{verdict}: {entry.area}: {entry.promise}", file=sys.stderr, flush=True)
            for test in missed:
                print(f"    {test}: {found[test]}", file=sys.stderr, flush=True)
    print("\n".join(table(("promise", "area", "broken file", "verdict"), rows)))
    seen = sum(row[-1] == "seen" for row in rows)
    print(
        f"{len(rows)} breaks: {seen} seen by all their tests, {escaped} survived, {len(rows) - seen - escaped} skipped"
    )
    raise SystemExit(1 if escaped else 0)


if __name__ == "__main__":
    run_command(main)
