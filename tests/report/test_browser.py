"""The page in headless Chromium: no errors, everything is drawn, tables sort and filter, a phone needs no scrolling."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import content, reason
from test_page import HOSTILE

from netanomaly.report.content import Content
from netanomaly.report.page import page

if sys.platform == "win32":
    pytest.skip("the browser is driven by pipes with numbers of their own", allow_module_level=True)

from browser import CHROMIUM, Browser, browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

DRAW = """
  for (const details of document.querySelectorAll("details")) details.open = true;
  for (const plot of document.querySelectorAll(".plot"))
    for (let i = 0; i < 200 && !plot.dataset.drawn; i++) {
      plot.scrollIntoView({behavior: "instant"});
      await new Promise((done) => setTimeout(done, 20));
    }
"""
LOOK = """
  return {
    undrawn: [...document.querySelectorAll(".plot")].filter((plot) => !plot.querySelector("svg.main-svg")).length,
    lines: document.querySelectorAll("#timeline-0 .plot .scatterlayer .trace").length,
    bars: document.querySelectorAll("#timeline-0 .plot .barlayer path").length,
    ink: getComputedStyle(document.querySelector("#timeline-0 .plot .annotation-text")).fill,
    paper: getComputedStyle(document.body).backgroundColor,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    outside: [...document.querySelectorAll("main *")]
      .filter((one) => !one.closest(".scroll, svg") && one.getBoundingClientRect().right > innerWidth + 1)
      .map((one) => String(one.className || one.tagName)),
  };
"""
USE = """
  const rows = () => [...document.querySelectorAll("#incident-table tbody tr")];
  const column = (n) => rows().filter((row) => !row.hidden).map((row) => row.cells[n].textContent.trim());
  const header = (n) => document.querySelectorAll("#incident-table thead button")[n];
  const starts = column(2);
  header(4).click();
  const upwards = column(4);
  header(4).click();
  const downwards = column(4);
  const label = document.querySelector("[data-filter=label]");
  label.value = "congestion";
  label.dispatchEvent(new Event("change"));
  const cards = [...document.querySelectorAll(".card")].filter((card) => !card.hidden);
  const button = cards[0].querySelector("[data-timeline]");
  button.click();
  const axis = document.querySelector(`#${button.dataset.timeline} .plot`)._fullLayout.xaxis;
  return {
    starts, upwards, downwards, kept: column(1), cards: cards.length,
    zoomed: axis.range.map((moment) => axis.r2l(moment)),
  };
"""
PRINT = """
  dispatchEvent(new Event("beforeprint"));
  const width = document.querySelector("#timeline-0 .plot svg.main-svg").getBoundingClientRect().width;
  const paper = getComputedStyle(document.body).backgroundColor;
  dispatchEvent(new Event("afterprint"));
  return {width, paper, after: getComputedStyle(document.body).backgroundColor};
"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with everything that one can have."""
    made = content("a", "a-link-with-a-long-name-that-goes-on-and-on-and-on")
    return _written(tmp_path_factory.mktemp("report") / "report.html", replace(made, reasons={0: reason(made, 0)}))


def _written(path: Path, made: Content) -> Path:
    path.write_text(page(made), encoding="utf-8")
    return path


def test_everything_is_drawn_and_the_table_sorts_and_filters(chromium: Browser, path: Path) -> None:
    chromium.open(path)
    chromium.run(DRAW)
    found, used = chromium.run(LOOK), chromium.run(USE)
    assert not chromium.messages, chromium.messages
    assert found["undrawn"] == 0 and found["lines"] == 3 and found["bars"] >= 10
    assert found["wide"] == 0 and not found["outside"] and found["paper"] == "rgb(246, 247, 249)"
    assert used["starts"] == sorted(used["starts"])
    shares = [float(value) for value in used["upwards"]]
    assert shares == sorted(shares) and used["downwards"] == used["upwards"][::-1]
    assert set(used["kept"]) == {"congestion"} and used["cards"] == len(used["kept"]) == 4
    alarms = content("a", "a-link-with-a-long-name-that-goes-on-and-on-and-on").alarms
    first = np.flatnonzero(alarms.labels == "congestion")[np.argmin(alarms.starts[alarms.labels == "congestion"])]
    start, last = int(alarms.starts[first]) / 1e6, int(alarms.lasts[first]) / 1e6  # ms
    assert used["zoomed"] == pytest.approx([start - 60_000, last + 60_000], abs=1)


def test_on_a_phone_nothing_but_tables_scrolls_sideways(chromium: Browser, path: Path) -> None:
    chromium.open(path, 390, 844)
    chromium.run(DRAW)
    found = chromium.run(LOOK)
    assert not chromium.messages
    assert found["undrawn"] == 0 and found["wide"] == 0 and found["outside"] == []


def test_in_the_dark_page_and_figures_are_dark_and_on_paper_they_are_not(chromium: Browser, path: Path) -> None:
    chromium.open(path, dark=True)
    chromium.run(DRAW)
    found, printed = chromium.run(LOOK), chromium.run(PRINT)
    assert not chromium.messages
    assert found["paper"] == printed["after"] == "rgb(18, 22, 27)" and found["ink"] == "rgb(230, 234, 238)"
    assert printed["width"] == 680 and printed["paper"] == "rgb(246, 247, 249)"


def test_names_from_data_run_nothing(chromium: Browser, tmp_path: Path) -> None:
    made = content("a", labelled=False, names={"congestion": f"c{HOSTILE}", "rtt_ms": f"m{HOSTILE}"}, scope=HOSTILE)
    made = replace(made, series=tuple(replace(one, name=HOSTILE) for one in made.series))
    alarms = replace(made.alarms, series=np.full(len(made.alarms), HOSTILE, dtype=object))
    chromium.open(_written(tmp_path / "hostile.html", replace(made, alarms=alarms)))
    chromium.run(DRAW)
    names = "return [...document.querySelectorAll('#timeline-0 .annotation-text')].map((one) => one.textContent)"
    assert f"m{HOSTILE} ms" in chromium.run(names)
    assert chromium.run("return [document.title, document.images.length]") == [
        f"{len(alarms)} alarms on 1 series \N{EN DASH} netanomaly",
        0,
    ]
    assert not chromium.messages
