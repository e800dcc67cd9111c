"""Every entry of tests/breaks can be applied and names tests that are there; a break that is not seen is told."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from netanomaly.errors import ConfigError

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts import break_on_purpose as breaking  # noqa: E402
from scripts.break_on_purpose import Break  # noqa: E402

ENTRIES = [entry for path in sorted(breaking.BREAKS.glob("*.yaml")) for entry in breaking.read_breaks(path)]
TEXT = "def loss(total, weight):\n    return total / weight\n"


def entry(old: str = "total / weight", new: str = "total", *, hangs: bool = False) -> Break:
    return Break("area", "losses are means", "src/netanomaly/x.py", old, new, ("tests/test_x.py::test_mean",), hangs)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.area}: {entry.promise}")
def test_an_entry_can_be_applied(entry: Break) -> None:
    text = (ROOT / entry.file).read_bytes().decode()
    assert entry.applied(text) != text


def test_the_tests_that_entries_name_are_there() -> None:
    functions: dict[str, set[str]] = {}
    for found in ENTRIES:
        for test in found.tests:
            path, _, name = test.partition("::")
            if path not in functions:
                tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
                functions[path] = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            assert name.partition("[")[0] in functions[path], test


def test_no_two_entries_are_alike() -> None:
    made = [(found.file, found.old, found.new) for found in ENTRIES]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("not there", "x", "0 times in"),
        ("total", "x", "2 times in"),
        ("total / weight", "total / /", "would be no Python"),
        ("total / weight", "(total / weight)", "changes nothing"),
    ],
)
def test_a_break_that_breaks_nothing_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        entry(old, new).applied(TEXT)


def test_an_entry_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "area.yaml"
    path.write_text("- {promise: p, file: src/netanomaly/x.py, old: a, new: b, test: [t]}\n")
    with pytest.raises(ConfigError, match="entry 1 needs promise, file, old, new and tests"):
        breaking.read_breaks(path)
    path.write_text("- {promise: p, file: README.md, old: a, new: b, tests: [t]}\n")
    with pytest.raises(ConfigError, match=r"entry 1: README\.md is not a file of src/netanomaly/"):
        breaking.read_breaks(path)


@pytest.mark.parametrize(
    ("inside", "outcome"),
    [
        ("", breaking.PASSED),
        ('<failure message="AssertionError: assert 1 == 2"/>', breaking.FAILED),
        ('<error message="failed on setup with &quot;ValueError: 1&quot;"/>', breaking.FAILED),
        ('<failure message="Failed: Timeout (&gt;120.0s) from pytest-timeout."/>', breaking.HUNG),
        ("<skipped/>", breaking.SKIPPED),
        ('<error message="collection failure"/>', breaking.NOT_RUN),
        ('<failure message="ImportError: cannot import name"/>', breaking.NOT_RUN),
        ("<failure message=\"NameError: name 'x' is not defined\"/>", breaking.NOT_RUN),
    ],
)
def test_an_outcome_is_what_pytest_reports(inside: str, outcome: str) -> None:
    report = f'<testsuites><testcase classname="tests.data.test_x" name="test_mean[1]">{inside}</testcase></testsuites>'
    asked = ["tests/data/test_x.py::test_mean", "tests/data/test_x.py::test_mea"]
    assert breaking.outcomes(report, asked) == {asked[0]: outcome, asked[1]: breaking.NOT_RUN}


def test_one_parameter_that_fails_is_enough() -> None:
    cases = ('"test_mean[1]"/>', '"test_mean[2]"><failure message="AssertionError"/></testcase>')
    report = "".join(f'<testcase classname="tests.test_x" name={case}' for case in cases)
    test = "tests/test_x.py::test_mean"
    assert breaking.outcomes(f"<testsuites>{report}</testsuites>", [test]) == {test: breaking.FAILED}


@pytest.mark.parametrize("outcome", [breaking.PASSED, breaking.NOT_RUN, breaking.HUNG])
def test_a_break_that_a_test_does_not_see_survives(outcome: str) -> None:
    assert breaking.survived(entry(), {"test": outcome, "other": breaking.FAILED}) == ["test"]


@pytest.mark.parametrize("outcome", [breaking.FAILED, breaking.HUNG])
def test_hanging_counts_where_the_entry_says_so(outcome: str) -> None:
    assert not breaking.survived(entry(hangs=True), {"test": outcome})
