"""Scoring by Ray Data: `groupby(share).map_groups`, a share being some parts of some series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import ray
from ray.data.context import DataContext, ShuffleStrategy

from netanomaly.cluster.output import check_output, committed
from netanomaly.cluster.packed import PackedBundle
from netanomaly.cluster.tasks import Job, told
from netanomaly.files import atomic


def score_ray(patterns: Sequence[str], bundle: Path, out: Path, job: Job) -> None:
    """Label every row of files and write the answers as Parquet files into a directory; those of an earlier run go.

    Ray has to be initialised.

    Args:
        patterns: CSV, CSV.gz or Parquet files, or patterns; like `out` on a file system that all workers see.

    Raises:
        BundleError, ConfigError, DataError: as of `netanomaly predict`; a task's after the retries of the engine.
    """
    check_output(out)
    packed = PackedBundle.of(bundle)
    files = job.check(packed, patterns)
    sent = ray.put(packed)
    # tasks, whose results can be made again when a worker is lost; actors of the hash shuffle lose what they hold
    DataContext.get_current().shuffle_strategy = ShuffleStrategy.SORT_SHUFFLE_PULL_BASED

    def read(batch: dict[str, Any]) -> Iterator[pd.DataFrame]:
        for number, name, path in zip(batch["number"], batch["name"], batch["path"], strict=True):
            for rows in job.read(ray.get(sent), (int(number), str(name), str(path))):
                yield rows.assign(share=job.share(rows))

    named = [{"number": number, "name": name, "path": path} for number, name, path in files]
    given = ray.data.from_items(named, override_num_blocks=len(named))
    try:
        with committed(out) as staging:

            def score(rows: pd.DataFrame) -> pd.DataFrame:
                return _write_share(job, ray.get(sent), rows, staging)

            given.map_batches(read, batch_size=1).groupby("share").map_groups(
                score, batch_format="pandas"
            ).materialize()
    except Exception as error:  # Ray's own have many bases
        raise (told(error) or error) from error


def _write_share(job: Job, packed: PackedBundle, rows: pd.DataFrame, directory: Path) -> pd.DataFrame:
    """The answers to the rows of a share as a file: the same one, whole, however often it is written."""
    share = int(rows["share"].iloc[0])
    answers = [job.score(packed, part) for _, part in rows.groupby(["series", "part"], sort=True)]
    found = pd.concat(answers, ignore_index=True)
    with atomic(directory / f"part-{share:05d}.parquet") as temporary:
        found.to_parquet(temporary, index=False)
    return pd.DataFrame({"share": [share], "rows": [len(found)]})
