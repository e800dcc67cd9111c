"""Scoring on a cluster: Apache Spark or Ray shuffle and retry, one function scores all rows of one series."""
