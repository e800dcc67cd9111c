"""Draw the figures of docs/attention.md.

Needs matplotlib, which the package itself does not: `pip install matplotlib`, then `python scripts/plot_attention.py`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from netanomaly.model.lookup import lookup
from netanomaly.model.positions import (
    binary_table,
    distance_buckets,
    linear_table,
    linear_unit_table,
    rotate,
    sine_table,
    sinusoidal_table,
)
from netanomaly.model.scores import ScoreRule

FIGURES = Path(__file__).parents[1] / "docs" / "attention"
HEIGHT, WEIGHT = [150.0, 160.0, 170.0, 190.0], [48.0, 55.0, 65.0, 80.0]
TEMPERATURES = (1.0, 20.0, 100.0, 500.0, 1e6)
ROWS, WIDTH = 64, 16
"""The window of the pictures of positions, and the channels of a head."""
TABLES: dict[str, Callable[[int, int], Tensor]] = {
    "linear": linear_table,
    "linear_unit": linear_unit_table,
    "binary": binary_table,
    "sine": sine_table,
    "sinusoidal": sinusoidal_table,
}
STYLE = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",  # a page may be dark
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "netanomaly",  # the same drawing, the same file
}


def main() -> None:
    """Draw all of them."""
    pyplot = _pyplot()
    FIGURES.mkdir(exist_ok=True)
    for name, draw in {"lookup": answers, "positions": tables, "distances": distances, "buckets": buckets}.items():
        figure = draw(pyplot)
        figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)


def answers(pyplot: Any) -> Any:
    """What the table of heights answers to every query."""
    query = torch.linspace(140, 200, 241, dtype=torch.float64)  # (Q,)
    figure, axes = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
    for temperature in TEMPERATURES:
        label = "1,000,000" if temperature > 1e5 else f"{temperature:g}"
        axes.plot(query, _answers(query, temperature), label=label)
    axes.plot(HEIGHT, WEIGHT, "ko", label="the table")
    axes.set(xlabel="query: height", ylabel="answer: weight")
    axes.legend(title="temperature", frameon=False)
    return figure


def tables(pyplot: Any) -> Any:
    """The tables of positions as images, each on a scale of its own."""
    figure, grid = pyplot.subplots(1, 6, figsize=(8, 4), sharey=True, layout="constrained")
    learned = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(0)) * 0.02  # as it starts
    drawn = {name: table(ROWS, WIDTH) for name, table in TABLES.items()} | {"learned,\nbefore training": learned}
    for axes, (name, table) in zip(grid, drawn.items(), strict=True):
        axes.imshow(table, aspect="auto", interpolation="nearest", cmap="viridis")
        axes.set_title(f"{name}\n{_short(table.min())} to {_short(table.max())}", fontsize=9)
        axes.set_xlabel("channel")
    grid[0].set_ylabel("row of the window")
    return figure


def distances(pyplot: Any) -> Any:
    """The product of the newest row's vector and those of the rows behind it, as a share of that with itself."""
    figure, axes = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
    for name, table in TABLES.items():
        rows = table(ROWS, WIDTH)  # (L, d)
        product = (rows @ rows[-1]).flip(0)  # (L,), from the newest row back
        style = "--" if name == "linear_unit" else "-"  # as a share it lies on linear
        axes.plot(product / product[0], style, label=name)
    ones = torch.ones(ROWS, WIDTH)
    turned = rotate(ones, torch.arange(ROWS))  # (L, d)
    product = (turned @ turned[-1]).flip(0)
    axes.plot(product / product[0], ":", color="black", label="rotary, q = k = 1")
    axes.set(xlabel="rows behind the newest", ylabel="product, newest row = 1", ylim=(-0.2, 1.4))
    axes.legend(frameon=False, ncols=2)
    return figure


def buckets(pyplot: Any) -> Any:
    """The bucket that each distance falls into, with the defaults of `relative_bias`."""
    distance = torch.arange(-200, 201)
    figure, axes = pyplot.subplots(figsize=(7, 3), layout="constrained")
    axes.step(distance, distance_buckets(distance, 32, 128), where="mid", color="black")
    axes.set(xlabel="place of the query - place of the key", ylabel="bucket")
    axes.text(-100, 4, "keys ahead of the query", ha="center")
    axes.text(100, 4, "keys behind it", ha="center")
    return figure


def _answers(query: Tensor, temperature: float) -> Tensor:
    """(Q,) to (Q,)"""
    rule = ScoreRule("distance", temperature)
    height, weight = (torch.tensor(numbers, dtype=torch.float64).view(1, 1, -1, 1) for numbers in (HEIGHT, WEIGHT))
    measured = torch.ones(1, len(HEIGHT), dtype=torch.bool)
    return lookup(rule.asking(query.view(1, 1, -1, 1)), rule.held(height), weight, measured).flatten()


def _short(number: Tensor) -> str:
    return f"{number.item():.2g}"


def _pyplot() -> Any:
    """By name, so that type checks do without it."""
    try:
        matplotlib, pyplot = importlib.import_module("matplotlib"), importlib.import_module("matplotlib.pyplot")
    except ModuleNotFoundError as error:
        sys.exit(f"{error}; the figures need matplotlib: pip install matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams.update(STYLE)
    return pyplot


if __name__ == "__main__":
    main()
