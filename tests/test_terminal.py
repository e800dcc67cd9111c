"""Hostile text cannot drive the terminal it is shown in."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netanomaly.cli import main
from netanomaly.terminal import PrintableFormatter, printable

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


@given(st.text() | st.text("\x00\x1b\x7f\x9b\u2028\u202ea\n\U000e0001"))
def test_nothing_but_line_breaks_and_printable_characters_is_left(text: str) -> None:
    assert all(character.isprintable() or character == "\n" for character in printable(text))
    assert printable(text) == text or not text.isprintable()


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_stays_the_same_json(value: object) -> None:
    assert json.loads(printable(json.dumps(value, ensure_ascii=False, indent=2))) == value


def test_log_records_are_printable() -> None:
    record = logging.LogRecord("x", logging.WARNING, __file__, 1, "%s: %d", (ESCAPE, 5), None)
    assert PrintableFormatter("%(message)s").format(record) == "\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m\\u202e: 5"


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_inspect_shows_escape_sequences_as_text(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "links.csv"
    rows = "".join(f"2026-03-01T00:00:0{n}Z,{ESCAPE}{n % 2},{n}\n" for n in range(6))
    path.write_text(f"time,link{ESCAPE},r{ESCAPE}tt\n{rows}", encoding="utf-8")
    main(["inspect", str(path), *options])
    told = capsys.readouterr()
    for text in (told.out, told.err):
        assert all(character.isprintable() or character == "\n" for character in text)
    assert "\\u001b]0;owned" in told.out


def test_an_error_shows_escape_sequences_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / f"no{ESCAPE}.csv")]) == 3
    error = capsys.readouterr().err.removesuffix("\n")
    assert error.isprintable() and "\\u001b]0;owned" in error
