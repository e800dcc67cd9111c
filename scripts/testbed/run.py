"""Measure faults on emulated links: real traffic in network namespaces, rows and incidents as in `data/testbed/`.

    python scripts/testbed/run.py --minutes 10 --links 4 --seed 1 --out DIR
    python scripts/testbed/run.py --smoke --out DIR
    python scripts/testbed/check.py DIR

Linux only; as root, or without as `unshare -Urn python scripts/testbed/run.py ...`. The host's network is not touched.
docs/testbed.md says what happens.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.bench.command import run_command
from scripts.testbed.limits import check_options
from scripts.testbed.links import Link, draw_links
from scripts.testbed.schedule import Fault, plan

from netanomaly.errors import ConfigError

SMOKE_MINUTES, SMOKE_LINKS, SMOKE_SEVERITY = 2.0, 2, 0.5
WIRES = ("forwarder", "netem", "auto")
LONG_MINUTES = 10.0
"""From here on every class has at least two faults."""


def main() -> None:
    """Plan, run, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=LONG_MINUTES, help="2 to 60; default: 10")
    parser.add_argument("--links", type=int, default=2, help="1 to 8; default: 2")
    parser.add_argument("--seed", type=int, default=1, help="of the links, the faults and the traffic; default: 1")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="is written")
    parser.add_argument(
        "--wire", choices=WIRES, default="forwarder", help="auto: netem if it is there; default: forwarder"
    )
    parser.add_argument(
        "--smoke", action="store_true", help="two minutes, two links, each fault once, none of them mild"
    )
    options = parser.parse_args()
    minutes, count = (SMOKE_MINUTES, SMOKE_LINKS) if options.smoke else (options.minutes, options.links)
    check_options(minutes, count, options.seed)
    if (options.out / "data.csv").exists():
        raise ConfigError(f"--out {options.out}: holds a run already; name another directory")
    options.out.mkdir(parents=True, exist_ok=True)
    links = draw_links(options.seed, count)
    faults = planned(links, minutes, options.seed, SMOKE_SEVERITY if options.smoke else 0.0)

    from scripts.testbed.campaign import run_campaign  # Linux only from here on
    from scripts.testbed.writing import write_run

    found = run_campaign(links, faults, minutes * 60, options.seed, options.wire)
    if not found.rows:
        raise KeyboardInterrupt
    write_run(options.out, found.rows, found.incidents, found.about)
    lags = [row.collector_lag_ms for row in found.rows]
    late = [row.forwarder_late_ms for row in found.rows if row.forwarder_late_ms is not None]
    print(f"{len(found.rows)} rows, {len(found.incidents)} incidents: {options.out}")
    print(f"lag of the collector: {_spread(lags)}" + (f"; of the forwarder: {_spread(late)}" if late else ""))
    if found.stopped:
        print(f"{Path(sys.argv[0]).name}: {found.stopped}; what was measured is written", file=sys.stderr)
        raise SystemExit(130)


def planned(links: list[Link], minutes: float, seed: int, least_severity: float) -> list[Fault]:
    """The faults of a run.

    Raises:
        ConfigError: not every class fits in.
    """
    try:
        return plan(
            links, minutes * 60, seed, rounds=2 if minutes >= LONG_MINUTES else 1, least_severity=least_severity
        )
    except ValueError as error:
        raise ConfigError(f"--minutes, --links: {error}; give more of either") from None


def _spread(values: list[float]) -> str:
    last = statistics.quantiles(values, n=100)[-1] if len(values) > 1 else values[0]
    return f"median {statistics.median(values):.1f} ms, p99 {last:.1f} ms, at most {max(values):.1f} ms"


if __name__ == "__main__":
    run_command(main)
