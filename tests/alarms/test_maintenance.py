"""Planned work wakes nobody."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import SECOND, alarms, seconds

from netanomaly.alarms.maintenance import ANY, Maintenance, suppress

Told = tuple[str, str, int, int, int]


def _planned(**windows: list[tuple[int, int]]) -> Maintenance:
    return Maintenance({ANY if name == "every" else name: np.array(some) * SECOND for name, some in windows.items()})


@pytest.mark.parametrize(
    ("told", "left"),
    [
        (("x", "a", 12, 15, 13), None),  # all of it in the window
        (("x", "a", 12, 19, 12), None),  # over when the window is
        (("x", "a", 12, 25, 13), ("x", "a", 12, 25, 20)),  # still going on: told at the end
        (("x", "a", 8, 15, 9), ("x", "a", 8, 15, 9)),  # raised before
        (("x", "a", 8, 15, 10), None),  # begun before, raised in it
        (("x", "a", 21, 22, 21), ("x", "a", 21, 22, 21)),
        (("x", "a", 20, 20, 20), ("x", "a", 20, 20, 20)),  # the end is not in the window
        (("y", "a", 12, 15, 13), ("y", "a", 12, 15, 13)),  # another series
        (("y", "a", 42, 45, 43), None),  # planned for every series
    ],
)
def test_alarms_in_a_window_are_left_out(told: Told, left: Told | None) -> None:
    kept, suppressed = suppress(alarms(told), _planned(x=[(10, 20)], every=[(40, 50)]))
    assert seconds(kept) == ([left] if left else [])
    assert suppressed == (left is None)


def test_windows_that_touch_are_one() -> None:
    planned = _planned(x=[(15, 30), (10, 20)], every=[(30, 40)])
    assert seconds(suppress(alarms(("x", "a", 12, 50, 13)), planned)[0]) == [("x", "a", 12, 50, 40)]
    assert (planned.of("x") == np.array([[10, 40]]) * SECOND).all()


def test_alarms_stay_in_the_order_in_which_they_are_raised() -> None:
    told = [("x", "a", 12, 25, 13), ("y", "a", 14, 15, 15)]
    assert seconds(suppress(alarms(*told), _planned(x=[(10, 20)]))[0]) == [
        ("y", "a", 14, 15, 15),
        ("x", "a", 12, 25, 20),
    ]
