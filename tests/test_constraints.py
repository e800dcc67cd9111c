"""constraints.txt pins all that the project and its extras install, and nothing else."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
BUILDING = {"hatchling", "pathspec", "pluggy", "packaging", "tomlkit", "trove-classifiers"}
"""What `pip wheel` installs in a place of its own."""
NOT_TESTED_WITH = {"lightgbm", "atheris"}
"""Of extras for comparisons and for long runs of the fuzzer, which the tests do without."""
ENGINES = {"pyspark", "ray"}
"""Of extras that are too large for every environment that tests run in; what only they need is pinned as well."""
OF_ENGINES = {"attrs", "jsonschema", "jsonschema-specifications", "msgpack", "py4j", "referencing", "rpds-py"}


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert all(str(pin.specifier).startswith("==") for pin in pins)
    return {_name(pin.name): str(pin.specifier)[2:] for pin in pins}


def _asked() -> list[Requirement]:
    """What the project and its extras name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [text for texts in project["optional-dependencies"].values() for text in texts]
    found = [Requirement(text) for text in (*project["dependencies"], *extras)]
    return [one for one in found if one.marker is None or one.marker.evaluate()]


def _needed() -> set[str]:
    """Names of all that is installed for that, as what is installed says. Exact versions within it need no pin."""
    waiting = [(one, False) for one in _asked() if _name(one.name) not in NOT_TESTED_WITH | ENGINES]
    seen: set[tuple[str, frozenset[str]]] = set()
    needed: set[str] = set()
    while waiting:
        one, exact = waiting.pop()
        name, extras = _name(one.name), frozenset(one.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        if not exact:
            needed.add(name)
        for text in metadata.requires(name) or []:
            next_one = Requirement(text)
            if next_one.marker is None or any(next_one.marker.evaluate({"extra": e}) for e in extras or {""}):
                waiting.append((next_one, str(next_one.specifier).startswith("==")))
    return needed


@pytest.mark.skipif(sys.platform != "linux", reason="other systems need other packages")
def test_every_package_that_is_installed_is_pinned_and_no_other() -> None:
    pins, needed = set(_pins()), _needed()
    assert needed - pins == set(), "needed, not pinned"
    exact = {name for name in pins - needed - BUILDING - ENGINES - OF_ENGINES if not _is_installed_for(name)}
    assert exact == set(), "pinned, not needed"


def _is_installed_for(name: str) -> bool:
    """Whether something that is needed asks for exactly this version: a pin does no harm."""
    return any(
        _name(Requirement(text).name) == name
        for one in _needed()
        for text in (metadata.requires(one) or [])
        if "extra ==" not in text
    )


def test_the_pins_are_what_the_project_allows() -> None:
    pins = _pins()
    for one in _asked():
        if _name(one.name) not in NOT_TESTED_WITH:
            assert one.specifier.contains(pins[_name(one.name)]), one
