"""Label the rows of files on Ray:

    python scripts/score_ray.py runs/mine 'links/*.parquet' --out labelled --cpus 2
    python scripts/score_ray.py runs/mine 'links/*.parquet' --out labelled --address auto

Writes a directory of Parquet files, which a later run replaces as a whole; docs/cluster.md has the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path

from netanomaly.cluster.options import parser, run
from netanomaly.cluster.tasks import Job
from netanomaly.errors import ConfigError
from netanomaly.interrupts import terminable


def main() -> int:
    """Score and return the exit code."""
    options = parser(__doc__ or "")
    where = options.add_mutually_exclusive_group()
    where.add_argument("--address", help="of a running cluster, such as auto; default: one on this machine")
    where.add_argument("--cpus", type=int, metavar="N", help="of this machine to use; default: all")
    options.add_argument("--store-mib", type=int, metavar="N", help="memory of this machine for rows on their way")
    given = options.parse_args()

    def score(files: list[str], bundle: Path, out: Path, job: Job) -> None:
        try:
            import ray

            from netanomaly.cluster.on_ray import score_ray
        except ImportError as error:
            raise ConfigError("scoring on Ray needs ray: pip install 'netanomaly[ray]'") from error
        if given.address is not None:
            ray.init(address=given.address)
        else:
            store = None if given.store_mib is None else given.store_mib * 2**20
            ray.init("local", num_cpus=given.cpus, object_store_memory=store, include_dashboard=False)
        try:
            with terminable():  # Ray has put a handler of its own in the place of ours
                score_ray(files, bundle, out, job)
        finally:
            ray.shutdown()

    return run(given, score)


if __name__ == "__main__":
    sys.exit(main())
