"""The bundle that comes with the package, for people who have no labels yet."""

from __future__ import annotations

from pathlib import Path

STARTER = "starter"
"""What it is called, where no file or directory of the user is called so."""


def is_starter(path: Path) -> bool:
    """Whether a path that was given names it."""
    return str(path) == STARTER and not path.exists()


def starter_directory() -> Path:
    """Where it is."""
    return Path(__file__).parent / "starter_bundle"
