"""What a cluster runs: rows of a series, in parts and in any order, have the answers of all rows at once."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from bundles import untrained
from netanomaly import Predictor, bundle_files, load
from netanomaly.bundle import save_bundle
from netanomaly.cluster import options, output
from netanomaly.cluster.output import check_output, committed
from netanomaly.cluster.packed import PackedBundle
from netanomaly.cluster.parts import Parts
from netanomaly.cluster.rows import answer_columns, row_columns, rows_of_table
from netanomaly.cluster.scoring import build_parts, score_series
from netanomaly.cluster.tasks import Job, told
from netanomaly.data.clock import jumps
from netanomaly.data.feed import FeedRule
from netanomaly.data.ingest import NO_PART, table_of_frames
from netanomaly.errors import BundleError, ConfigError, DataError, EngineError
from netanomaly.interrupts import Terminated
from networks import link
from streams import form_of, hard_network, predictor, times_near_halves

ROOT = Path(__file__).parents[1]
FIXTURE = ROOT / "tests" / "fixtures" / "bundle_v4"
SECOND = 10**9
PART_ROWS = 160
"""Little more than what goes along with a part of the small models here."""


def rows_of(trained: Predictor, frame: pd.DataFrame, parts: Parts) -> pd.DataFrame:
    return rows_of_table(table_of_frames([(frame, NO_PART, "frame")], form_of(trained)), parts, "links.csv", 0, 0)


def scored(trained: Predictor, rows: pd.DataFrame, parts: Parts) -> pd.DataFrame:
    """As an engine would: every part of every series by itself; in the order of the input."""
    answers = [score_series(group, trained, parts) for _, group in rows.groupby(["series", "part"])]
    return pd.concat(answers).sort_values(["file", "row"], ignore_index=True)


def equal_to_single_machine(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    assert found["row"].tolist() == list(range(len(wanted)))
    for column in ("series", "timestamp", "label"):
        assert found[column].tolist() == wanted[column].tolist()
    numbers = ["confidence", "novelty", *(column for column in wanted if column.startswith("p_"))]
    np.testing.assert_allclose(found[numbers].to_numpy(), wanted[numbers].to_numpy(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("shared", [False, True], ids=["apart", "shared"])
@pytest.mark.parametrize("part_rows", [0, PART_ROWS])
def test_parts_have_the_answers_of_the_whole(shared: bool, part_rows: int) -> None:
    trained = predictor(duplicates="mean" if shared else "error")
    frame, parts = hard_network(400, shared=shared), build_parts(trained, part_rows)
    rows = rows_of(trained, frame, parts)
    assert rows.groupby("series")["part"].nunique().max() == (1 if part_rows == 0 else 4)
    equal_to_single_machine(scored(trained, rows, parts), trained.predict(frame))


@examples(max_examples=6, deadline=None)
@given(st.integers(0, 159), st.sampled_from(["last", "mean"]))
def test_parts_may_be_cut_anywhere(later: int, duplicates: str) -> None:
    trained, frame = predictor(duplicates=duplicates), hard_network(250, shared=True)
    moved = pd.to_datetime(frame["timestamp"], format="ISO8601") + pd.Timedelta(seconds=later)
    frame["timestamp"] = moved.dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ").astype(object)
    frame = frame[frame["link"] == "y"].reset_index(drop=True)
    parts = build_parts(trained, PART_ROWS)
    equal_to_single_machine(scored(trained, rows_of(trained, frame, parts), parts), trained.predict(frame))


@pytest.mark.parametrize("duplicates", ["last", "mean"])
def test_a_step_may_lie_on_both_sides_of_a_cut(duplicates: str) -> None:
    trained, frame = predictor(duplicates=duplicates, counter=False), link("a", 200).drop(columns="label")
    parts = build_parts(trained, PART_ROWS)
    assert frame["timestamp"][160] == "2026-03-01T00:02:40Z"
    assert pd.Timestamp(frame["timestamp"][160]).value % (PART_ROWS * SECOND) == 0
    before = frame.iloc[[160]].assign(timestamp="2026-03-01T00:02:39.9Z", rtt_ms=1e6, loss_ratio=1.0)
    frame = pd.concat([frame.iloc[:160], before, frame.iloc[160:]], ignore_index=True)
    wanted = trained.predict(frame)
    assert wanted["confidence"][160] == wanted["confidence"][161]
    equal_to_single_machine(scored(trained, rows_of(trained, frame, parts), parts), wanted)


def test_order_does_not_matter_and_the_columns_are_fixed() -> None:
    trained, frame = predictor(duplicates="last"), hard_network(200, shared=True)
    parts = build_parts(trained, PART_ROWS)
    rows = rows_of(trained, frame, parts)
    assert list(rows) == list(row_columns(3))
    found = scored(trained, rows, parts)
    assert list(found) == list(answer_columns(trained.classes))
    pd.testing.assert_frame_equal(found, scored(trained, rows.sample(frac=1, random_state=0), parts))
    only_context = rows[rows["context"] & (rows["series"] == "w")]
    nothing = score_series(only_context[only_context["part"] == only_context["part"].max()], trained, parts)
    assert len(nothing) == 0
    assert nothing.dtypes.tolist() == found.dtypes.tolist()


def test_a_row_that_shares_a_step_and_must_not_is_told_with_its_place() -> None:
    trained, frame = predictor(), hard_network(60)
    again = pd.concat([frame, frame.iloc[[9]]], ignore_index=True)
    parts = build_parts(trained, 0)
    with pytest.raises(DataError, match=rf"links.csv: row {len(frame)}: series .* of links.csv: row 9 again"):
        scored(trained, rows_of(trained, again, parts), parts)


def rule(history: int = 20, max_gap: int = 3) -> FeedRule:
    return FeedRule((), SECOND, max_gap, False, history)


@examples(max_examples=60, deadline=None)
@given(times_near_halves(SECOND, most=200))
def test_steps_that_are_said_to_be_exact_are(times: np.ndarray) -> None:
    parts = Parts(rule(), 150, may_share=True)
    whole = np.cumsum(jumps(times, SECOND)[0])
    which, part, context = parts.copies(times)
    assert sorted(which[~context].tolist()) == list(range(len(times)))
    for number in np.unique(part[~context]):
        mine = np.sort(which[part == number])
        first = int(np.searchsorted(mine, which[(part == number) & ~context].min()))
        if not parts.is_exact(int(number), times[mine], first):
            continue
        cold = np.cumsum(jumps(times[mine], SECOND)[0])
        counted = whole[mine] >= whole[mine[first]] - 20
        gaps = np.diff(whole[mine[: first + 1]]) > 4
        counted[: int(np.flatnonzero(gaps)[-1]) + 1 if gaps.any() else 0] = False
        assert ((cold - cold[first]) == (whole[mine] - whole[mine[first]]))[counted].all()
        assert (
            not set(np.flatnonzero(whole >= whole[mine[first]] - 20)) & set(range(mine[first])) - set(mine)
            or gaps.any()
        )


def test_where_a_series_cannot_be_cut_is_told() -> None:
    times = np.arange(0, 400 * SECOND, SECOND // 2)  # half an interval apart: which rows share depends on the first
    parts = Parts(rule(), 150, may_share=True)
    mine = times[(times >= 300 * SECOND - parts.reach_ns)]
    first = int(np.searchsorted(mine, 300 * SECOND))
    assert not parts.is_exact(2, mine, first)
    assert Parts(rule(), 0, may_share=True).is_exact(0, mine, first)


def test_parts_are_longer_than_what_goes_along() -> None:
    with pytest.raises(ConfigError, match=r"--part-rows 40: .* give at least 9"):
        Parts(rule(), 40, may_share=False)


def test_a_packed_bundle_answers_as_the_directory(tmp_path: Path) -> None:
    packed = PackedBundle.of(FIXTURE)
    assert packed.predictor() is packed.predictor(()) is PackedBundle.of(FIXTURE).predictor()
    assert packed.predictor().config.threads == 1
    assert packed.predictor().classes == load(FIXTURE).classes
    damaged = PackedBundle({**packed.files, "bundle.json": packed.files["bundle.json"] + b" "})
    assert damaged.sha256 != packed.sha256
    with pytest.raises(BundleError, match="is not the file that was saved"):
        damaged.predictor()
    with pytest.raises(BundleError, match="no bundle here"):
        PackedBundle.of(tmp_path)


def test_a_bundle_is_packed_as_carefully_as_it_is_loaded(tmp_path: Path) -> None:
    whole = PackedBundle.of(FIXTURE)
    assert whole.files["manifest.json"] == (FIXTURE / "manifest.json").read_bytes()
    for name, content in whole.files.items():  # as a kill between the manifest and the renames leaves it
        (tmp_path / name).write_bytes(content if name == "manifest.json" else b"of an earlier bundle")
        if name != "manifest.json":
            (tmp_path / f"{name}.new").write_bytes(content)
    assert PackedBundle.of(tmp_path) == whole
    (tmp_path / "bundle.json.new").unlink()
    with pytest.raises(BundleError, match="is not the file that was saved"):
        PackedBundle.of(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes as POSIX has them")
@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(BundleError, match="is no regular file"):
        PackedBundle.of(tmp_path)


def test_a_bundle_that_is_replaced_as_it_is_packed_is_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_bundle(tmp_path, untrained(0))
    old, real = PackedBundle.of(tmp_path), bundle_files.read_file
    reads: list[str] = []

    def read_file(directory: Path, name: str, entry: bundle_files.Entry) -> bytes:
        reads.append(name)
        if len(reads) == 2:  # the manifest and the content of the old one have been read
            save_bundle(tmp_path, untrained(1))
        return real(directory, name, entry)

    monkeypatch.setattr(bundle_files, "read_file", read_file)
    found = PackedBundle.of(tmp_path)
    assert found != old
    assert found == PackedBundle.of(tmp_path)


def test_output_is_replaced_as_a_whole(tmp_path: Path) -> None:
    out = tmp_path / "answers"
    for content in ("old", "new"):
        check_output(out)
        with committed(out) as staging:
            (staging / "part.txt").write_text(content)
            (staging / ".part.txt.1.tmp").touch()  # of a worker that was killed
    with pytest.raises(ZeroDivisionError), committed(out) as staging:
        (staging / "part.txt").write_text("broken")
        1 / 0  # noqa: B018
    assert (out / "part.txt").read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*") if path.suffix != ".lock") == [
        "_SUCCESS",
        "answers",
        "part.txt",
    ]
    (out / "_SUCCESS").unlink()
    with pytest.raises(ConfigError, match="holds no answers"):
        check_output(out)


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_a_kill_as_answers_are_replaced_loses_none(
    renames: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, others = tmp_path / "answers", [tmp_path / ".answers.x.old", tmp_path / ".other.00000000.new"]
    with committed(out) as staging:
        (staging / "part.txt").write_text("old")
    for other in others:  # not of this output's making
        other.mkdir()
    done: list[Path] = []

    def rename(path: Path, target: Path) -> Path:
        if len(done) == renames:
            raise SystemExit
        done.append(path)
        return real(path, target)

    real = Path.rename
    with monkeypatch.context() as killed:
        killed.setattr(Path, "rename", rename)
        killed.setattr(output, "_tidy", lambda out: None)
        with contextlib.suppress(SystemExit), committed(out) as staging:
            (staging / "part.txt").write_text("new")
            (staging / "_temporary").mkdir()
    assert out.exists() == (renames != 1)
    check_output(out)
    assert (out / "part.txt").read_text() == ("new" if renames == 2 else "old")
    assert sorted(path for path in tmp_path.iterdir() if path.suffix != ".lock") == sorted([out, *others])


def test_two_runs_do_not_write_the_same_answers(tmp_path: Path) -> None:
    with committed(tmp_path / "answers") as staging:
        with pytest.raises(ConfigError, match="another run is writing there"), committed(tmp_path / "answers"):
            pass
        with pytest.raises(ConfigError, match="another run is writing there"):
            check_output(tmp_path / "answers")
        assert staging.is_dir()


def test_the_error_of_a_task_is_told_as_it_is() -> None:
    text = "Job aborted\n  File x\nnetanomaly.errors.DataError: a.csv: line 3: no\n\tat org.apache"
    error = told(RuntimeError(text))
    assert isinstance(error, DataError)
    assert str(error) == "a.csv: line 3: no"
    assert told(RuntimeError("out of memory")) is None


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "answers"), 2, "answers: No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (Terminated(), 143, "terminated"),
        (DataError("a.csv: line 3: \x1b[2J\nno"), 3, "a.csv: line 3: \\u001b[2J\\nno"),
        (RuntimeError("Job\n  aborted \x1b"), 6, "the engine failed: Job aborted \\u001b"),
    ],
    ids=lambda found: type(found).__name__,
)
def test_the_scripts_end_as_the_program_does(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def score(*_: object) -> None:
        raise error

    assert options.run(options.parser("").parse_args([str(FIXTURE), "a.csv", "--out", "answers"]), score) == code
    assert capsys.readouterr().err == f"netanomaly: {line}\n"


def test_the_scripts_show_a_traceback_on_request() -> None:
    def score(*_: object) -> None:
        raise RuntimeError("no workers")

    given = options.parser("").parse_args([str(FIXTURE), "a.csv", "--out", "answers", "--debug"])
    with pytest.raises(EngineError, match="no workers"):
        options.run(given, score)


def test_shares_are_the_same_everywhere() -> None:
    rows = pd.DataFrame({"series": ["a", "b", "a"], "part": [0, 0, 1]})
    found = Job(shares=4).share(rows)
    assert found.tolist() == Job(shares=4).share(rows[::-1])[::-1].tolist()
    assert set(Job(shares=1).share(rows)) == {0}
