"""A bundle with anything in it changed, and signed again: it loads and answers, or is a BundleError. Nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundles import sign, untrained
from netanomaly.bundle import load_bundle, save_bundle
from netanomaly.bundle_files import CONTENT
from netanomaly.errors import BundleError, NetanomalyError
from netanomaly.inspect.bundle_card import bundle_card, bundle_text
from netanomaly.predictor import load
from networks import link

FIXTURE = Path(__file__).parent / "fixtures" / "bundle_v4"
NUMBERS = st.sampled_from([-1, 0, 1, 2, 3, 7, 2**31, 2**40, 2**62, -(2**62), 0.5, -0.0, 1e-300, 1e300, 1e18])
WORDS = st.sampled_from(
    ["", "auto", "x", "1s", "1ns", "50000d", "normal", "\x00", "../x", "os.system", "attention", "%Y"]
)
VALUES = (
    st.none()
    | st.booleans()
    | NUMBERS
    | WORDS
    | st.sampled_from([[], {}, [[]], [1], ["x"], {"kind": "none"}, {"kind": "language_model"}])
)
ROWS: pd.DataFrame = link("f", 70)

Place = tuple[Any, ...]


def _places(node: Any, place: Place = ()) -> Iterator[Place]:
    """Every object, list and value within a tree."""
    if place:
        yield place
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from _places(child, (*place, key))


def _with_known(tmp_path: Path) -> dict[str, Any]:
    """The content of a bundle that has all parts there are."""
    bundle = untrained()
    save_bundle(tmp_path / "run", bundle)
    tree: dict[str, Any] = json.loads((tmp_path / "run" / CONTENT).read_text(encoding="utf-8"))
    known = {"chosen": [0, 1], "rows": 3, "means": [[0.0, 0.0]], "scale": [1.0, 1.0], "joint": [[0.1], [0.1]]}
    tree["decisions"]["known"] = {**known, "limit": 2.0}
    tree["facts"]["split"] = {"train": {"rows": 5, "series": ["a"], "classes": {"normal": 5}}}
    return tree


def _mutated(tree: dict[str, Any], data: st.DataObject) -> dict[str, Any]:
    tree = copy.deepcopy(tree)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(sorted(_places(tree), key=str)))
        parent: Any = tree
        for key in place[:-1]:
            parent = parent[key]
        match data.draw(st.sampled_from(["change", "change", "change", "remove", "double", "swap"])):
            case "change":
                parent[place[-1]] = data.draw(VALUES)
            case "remove":
                del parent[place[-1]]
            case "double" if isinstance(parent, list):
                parent.append(copy.deepcopy(parent[place[-1]]))
            case "double":
                parent[f"{place[-1]}2"] = copy.deepcopy(parent[place[-1]])
            case "swap":
                other = data.draw(st.sampled_from(list(parent) if isinstance(parent, dict) else range(len(parent))))
                parent[place[-1]], parent[other] = parent[other], parent[place[-1]]
    return tree


def _check(directory: Path) -> None:
    """Load it; then let it answer and tell about itself."""
    try:
        load_bundle(directory)
    except BundleError as error:
        assert "\n" not in str(error)
        return
    with suppress(NetanomalyError):  # these rows are none of its, or too few
        answers = load(directory, device="cpu").predict(ROWS)
        assert answers["confidence"].between(0, 1 + 1e-9).all()
    with suppress(NetanomalyError):
        bundle_text(bundle_card(directory))


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    place = tmp_path_factory.mktemp("mutations")
    return place / "run", _with_known(place)


@pytest.mark.filterwarnings("ignore")  # numbers near the largest float overflow; that is not what this is about
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_changed_content_loads_and_answers_or_is_refused(
    content: tuple[Path, dict[str, Any]], data: st.DataObject
) -> None:
    directory, tree = content
    (directory / CONTENT).write_text(json.dumps(_mutated(tree, data)), encoding="utf-8")
    sign(directory)
    _check(directory)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore")
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_changed_content_loads_and_answers_or_is_refused_many_times(
    content: tuple[Path, dict[str, Any]], data: st.DataObject
) -> None:
    directory, tree = content
    (directory / CONTENT).write_text(json.dumps(_mutated(tree, data)), encoding="utf-8")
    sign(directory)
    _check(directory)
