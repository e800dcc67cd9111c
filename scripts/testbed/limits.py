"""What no run exceeds, whatever is asked for."""

from __future__ import annotations

from netanomaly.errors import ConfigError

MAX_MINUTES = 60.0
MIN_MINUTES = 2.0
MAX_LINKS = 8
MAX_LINK_BPS = 45e6
"""Rate of the fastest link, bit/s: the token buckets let no more through."""
MAX_FAULT_PPS = 5000.0
"""Packets per second of one fault."""
GRACE_S = 20
"""Seconds after its planned end at which the kernel ends a process of the run that hangs."""


def check_options(minutes: float, links: int, seed: int) -> None:
    """Refuse a run that is too long or too large.

    Raises:
        ConfigError: with what is allowed.
    """
    if not MIN_MINUTES <= minutes <= MAX_MINUTES:
        raise ConfigError(f"--minutes: {minutes:g} is not between {MIN_MINUTES:g} and {MAX_MINUTES:g}")
    if not 1 <= links <= MAX_LINKS:
        raise ConfigError(f"--links: {links} is not between 1 and {MAX_LINKS}")
    if seed < 0:
        raise ConfigError(f"--seed: {seed} is negative")
