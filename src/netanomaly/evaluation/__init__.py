"""Scores against the truth: row by row, per class and per series, beside simple baselines."""
