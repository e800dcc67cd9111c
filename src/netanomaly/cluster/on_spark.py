"""Scoring by Apache Spark: `groupBy(series, part).applyInPandas`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql.types import BooleanType, DataType, DoubleType, LongType, StringType, StructField, StructType

from netanomaly.cluster.output import check_output, committed
from netanomaly.cluster.packed import PackedBundle
from netanomaly.cluster.rows import answer_columns, row_columns
from netanomaly.cluster.tasks import Job, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TYPES: dict[str, DataType] = {
    "string": StringType(),
    "long": LongType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
}


def score_spark(session: SparkSession, patterns: Sequence[str], bundle: Path, out: Path, job: Job) -> None:
    """Label every row of files and write the answers as Parquet files into a directory; those of an earlier run go.

    Args:
        session: not of Spark Connect, which has no broadcasts.
        patterns: CSV, CSV.gz or Parquet files, or patterns; like `out` on a file system that all workers see.

    Raises:
        BundleError, ConfigError, DataError: as of `netanomaly predict`; a task's after the retries of the engine.
    """
    check_output(out)
    packed = PackedBundle.of(bundle)
    files = job.check(packed, patterns)
    predictor = packed.predictor(job.overrides)
    sent = session.sparkContext.broadcast(packed)
    # as many files as shares, each with the same rows in every run: nothing is decided by sizes seen on the way
    session.conf.set("spark.sql.shuffle.partitions", str(job.shares))
    session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")

    def read(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            for number, name, path in batch.itertuples(index=False):
                yield from job.read(sent.value, (number, name, path))

    def score(rows: pd.DataFrame) -> pd.DataFrame:
        return job.score(sent.value, rows)

    named = {"file_number": "long", "file": "string", "path": "string"}
    given = session.createDataFrame(session.sparkContext.parallelize(files, len(files)), _schema(named))
    rows = given.mapInPandas(read, _schema(row_columns(len(predictor.config.data.metrics))))
    answers = rows.groupBy("series", "part").applyInPandas(score, _schema(answer_columns(predictor.classes)))
    try:
        with committed(out) as staging:
            answers.write.mode("overwrite").parquet(staging.as_uri())
    except Exception as error:  # py4j's and PySpark's own share no base
        raise (told(error) or error) from error
    finally:
        sent.destroy()


def _schema(columns: dict[str, str]) -> Any:
    return StructType([StructField(name, _TYPES[kind]) for name, kind in columns.items()])
