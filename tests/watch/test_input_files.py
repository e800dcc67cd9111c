"""Files that grow, are rotated and truncated, and places in them."""

from __future__ import annotations

import queue
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from netanomaly import DataError
from netanomaly.watch.files import ROTATED, TRUNCATED
from netanomaly.watch.lines import LineSource
from netanomaly.watch.place import Place

LINES = [f"{number},line\n" for number in range(400)]
NO_RENAME = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be renamed")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netanomaly.watch.files.POLL_SECONDS", 0.01)
    monkeypatch.setattr("netanomaly.watch.lines.TICK_SECONDS", 0.05)


class Follower:
    """Follows a file; what has come so far."""

    def __init__(self, path: Path, encoding: str = "utf-8", start: Place | None = None) -> None:
        self.source = LineSource(path, encoding, follow=True, start=start)
        self.batches = self.source.batches()
        self.lines: list[str] = []
        self.news: list[str] = []

    def until(self, done: Callable[[Follower], bool]) -> None:
        for _ in range(200):
            if done(self):
                return
            batch = next(self.batches)
            self.lines += batch.lines
            self.news += [batch.turned] if batch.turned else []
        raise AssertionError((self.lines[-3:], self.news))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    result = tmp_path / "a.csv"
    result.write_text("a,b\n" + "".join(LINES[:100]), newline="")
    return result


@pytest.fixture
def follower(path: Path) -> Iterator[Follower]:
    result = Follower(path)
    result.until(lambda found: len(found.lines) == 100)
    yield result
    result.source.__exit__()


def add(path: Path, text: str) -> None:
    with path.open("a", newline="") as stream:
        stream.write(text)


def test_half_a_line_waits_for_the_rest(path: Path, follower: Follower) -> None:
    add(path, LINES[100][:4])
    for _ in range(3):
        assert not next(follower.batches).lines
    add(path, LINES[100][4:] + LINES[101])
    follower.until(lambda found: found.lines == LINES[:102])


@NO_RENAME
def test_a_file_that_is_renamed_and_made_anew_is_read_to_its_end_first(path: Path, follower: Follower) -> None:
    old = path.rename(path.with_name("a.csv.1"))
    add(old, LINES[100])  # the writer has not noticed yet
    path.touch()
    add(old, LINES[101])
    follower.until(lambda found: len(found.lines) == 102)
    assert not follower.news
    add(path, "a,b\n" + LINES[103])
    add(old, LINES[102])  # after the first line of the new one
    follower.until(lambda found: len(found.lines) == 105)
    assert follower.lines == [*LINES[:103], "a,b\n", LINES[103]]
    assert follower.news == [f"{path}: {ROTATED}"]
    place = follower.source.place()
    assert place is not None and place.offset == path.stat().st_size and place.lines == 1


@pytest.mark.parametrize("half", ["", "100,li"])
def test_a_file_that_is_truncated_is_read_from_its_start(path: Path, follower: Follower, half: str) -> None:
    add(path, half)
    assert not next(follower.batches).lines
    path.write_text("a,b\n" + LINES[200], newline="")
    follower.until(lambda found: len(found.lines) == 102)
    assert follower.lines == [*LINES[:100], "a,b\n", LINES[200]]
    assert follower.news == [f"{path}: {TRUNCATED}" + ("; half a line was lost" if half else "")]


def test_a_file_that_was_truncated_and_has_grown_beyond_is_noticed(path: Path, follower: Follower) -> None:
    for _ in range(3):  # it has seen the end
        assert not next(follower.batches).lines
    path.write_text("a,b\n" + "".join(LINES[200:400]), newline="")
    follower.until(lambda found: bool(found.lines) and found.lines[-1] == LINES[-1])
    assert LINES[200] in follower.lines and follower.news == [f"{path}: {TRUNCATED}"]


def rest(path: Path, start: Place | None, encoding: str = "utf-8") -> tuple[list[str], list[str], LineSource]:
    """The lines after a place, what was said, the source."""
    with LineSource(path, encoding, start=start) as source:
        batches = list(source.batches())
    said = [source.news] if source.news else []
    return [line for batch in batches for line in batch.lines], said + [b.turned for b in batches if b.turned], source


@pytest.fixture
def place(path: Path) -> Place:
    _, _, source = rest(path, None)
    found = source.place()
    assert found is not None
    return Place.of_json(found.as_json())


def test_a_place_is_gone_on_from(path: Path, place: Place) -> None:
    add(path, "".join(LINES[100:110]))
    lines, said, source = rest(path, place)
    assert (lines, said, source.goes_on, source.header) == (LINES[100:110], [], True, "a,b\n")
    again = source.place()
    assert again is not None and again.lines == 110
    assert rest(path, again)[0] == []


@NO_RENAME
def test_the_rest_of_a_file_that_was_rotated_meanwhile_comes_first(path: Path, place: Place) -> None:
    add(path, "".join(LINES[100:110]))
    path.rename(path.with_name("a.csv.1"))
    path.write_text("a,b\n" + LINES[110], newline="")
    lines, said, source = rest(path, place)
    assert lines == [*LINES[100:110], "a,b\n", LINES[110]]
    assert source.goes_on and "the rest of a.csv.1 comes first" in said[0] and said[1] == f"{path}: {ROTATED}"


@pytest.mark.parametrize("what", ["shorter", "other"])
def test_another_file_is_read_from_its_start_and_that_is_told(path: Path, place: Place, what: str) -> None:
    path.write_text("a,b\n" + "".join(LINES[300:] if what == "shorter" else LINES[200:]), newline="")
    place = replace(place, offset=place.offset if what == "other" else 10**6)
    lines, said, source = rest(path, place)
    assert lines[0] in LINES[200:] and not source.goes_on and "not the file of the saved state" in said[0]


def test_a_text_of_wide_letters_has_lines_but_no_places(path: Path) -> None:
    path.write_text("a,b\n1,\u0a00\n2,y\n", encoding="utf-16", newline="")
    lines, _, source = rest(path, None, "utf-16")
    assert (source.header, lines, source.place()) == ("a,b\n", ["1,\u0a00\n", "2,y\n"], None)


def test_what_is_no_place_is_refused() -> None:
    with pytest.raises(DataError, match="none"):
        Place.of_json({"offset": "x"})


def test_an_error_of_the_reading_thread_is_raised(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LineSource(path, "utf-8", follow=True) as source:
        assert isinstance(source._arrived, queue.Queue)
        source._arrived.put(OSError("gone"))
        with pytest.raises(OSError, match="gone"):
            list(source.batches())
