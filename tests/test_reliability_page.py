"""docs/reliability.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_names_exists() -> None:
    path, count = "", 0
    for named, test in re.findall(r"`((?:tests|scripts)/[\w/.]+)?(?:::(\w+))?`", PAGE):
        path = named or path
        if not path or not (named or test):
            continue
        assert (ROOT / path).exists(), path
        if test:
            assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{test}"
        count += 1
    assert count > 100


def test_every_promise_of_the_list_has_its_tests() -> None:
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \| .+ \| .*`tests/.+ \| .+ \|$", PAGE, re.MULTILINE)]
    assert numbers == list(range(1, 26))
