"""Bundles of older formats keep loading and answering as they did."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pandas as pd
import pytest

from netanomaly import load
from netanomaly.bundle import load_bundle, save_bundle
from netanomaly.bundle_formats import FORMAT, MIGRATIONS
from netanomaly.retuning import Wishes, tune_bundle
from networks import link

FIXTURES = Path(__file__).parent / "fixtures"
OLD = sorted(FIXTURES.glob("bundle_v*[0-9]"))


def test_every_older_format_has_a_bundle_and_a_step() -> None:
    numbers = [int(path.name.removeprefix("bundle_v")) for path in OLD]
    assert numbers == sorted(MIGRATIONS) == list(range(1, FORMAT))


@pytest.mark.parametrize("directory", OLD, ids=lambda path: path.name)
def test_predictions_are_those_of_the_version_that_wrote_it(directory: Path) -> None:
    text = (FIXTURES / f"{directory.name}_predictions.csv").read_text(encoding="utf-8")
    expected = pd.read_csv(io.StringIO(text), dtype={"series": str})
    found = load(directory).predict(link("f", 60))
    assert not found.pop("novelty").any()  # these formats do not know what their training rows were like
    pd.testing.assert_frame_equal(found, expected, check_exact=False, rtol=0, atol=1e-6, check_dtype=False)


@pytest.mark.parametrize("directory", OLD, ids=lambda path: path.name)
def test_saved_again_it_has_the_format_of_today(directory: Path, tmp_path: Path) -> None:
    save_bundle(tmp_path / "new", load_bundle(directory))
    assert f'"format": {FORMAT}' in (tmp_path / "new" / "bundle.json").read_text(encoding="utf-8")
    pd.testing.assert_frame_equal(load(tmp_path / "new").predict(link("f", 60)), load(directory).predict(link("f", 60)))


@pytest.mark.parametrize("directory", OLD, ids=lambda path: path.name)
def test_tuned_it_answers_as_before(directory: Path, tmp_path: Path) -> None:
    shutil.copytree(directory, tmp_path / "tuned")
    tune_bundle(tmp_path / "tuned", Wishes(changes={"min_rows": 2}))
    assert load_bundle(tmp_path / "tuned").decisions.alarms.min_rows == 2
    pd.testing.assert_frame_equal(
        load(tmp_path / "tuned").predict(link("f", 60)), load(directory).predict(link("f", 60))
    )
