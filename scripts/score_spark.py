"""Label the rows of files on Apache Spark:

    python scripts/score_spark.py runs/mine 'links/*.parquet' --out labelled --master 'local[2,4]'
    spark-submit --master spark://head:7077 scripts/score_spark.py runs/mine 'links/*.parquet' --out labelled

Writes a directory of Parquet files, which a later run replaces as a whole; docs/cluster.md has the rest.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from netanomaly.cluster.options import parser, run
from netanomaly.cluster.tasks import Job
from netanomaly.errors import ConfigError


def main() -> int:
    """Score and return the exit code."""
    options = parser(__doc__ or "")
    options.add_argument("--master", help="where Spark runs, such as local[2,4]; default: as spark-submit says")
    given = options.parse_args()

    def score(files: list[str], bundle: Path, out: Path, job: Job) -> None:
        try:
            from pyspark.sql import SparkSession

            from netanomaly.cluster.on_spark import score_spark
        except ImportError as error:
            raise ConfigError("scoring on Spark needs pyspark: pip install 'netanomaly[spark]'") from error
        logging.getLogger("py4j").setLevel(logging.WARNING)
        builder = SparkSession.builder.appName("netanomaly")
        session = (builder.master(given.master) if given.master else builder).getOrCreate()
        try:
            score_spark(session, files, bundle, out, job)
        finally:
            session.stop()

    return run(given, score)


if __name__ == "__main__":
    sys.exit(main())
