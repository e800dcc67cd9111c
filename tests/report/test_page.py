"""The page: what stands in it, what does not, and that whatever comes from data stays text."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from made import SECOND, content, reason

from netanomaly.data.reference import reference
from netanomaly.errors import ConfigError
from netanomaly.report import cards
from netanomaly.report import page as pages
from netanomaly.report.incidents import incidents
from netanomaly.report.overview import overview
from netanomaly.report.page import page

HOSTILE = "</script><script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\"><b>'\"&amp;"


class Page(HTMLParser):
    """Tags, ids and texts of a page, and what stands in its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: set[str] = set()
        self.scripts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.ids |= {value for name, value in attrs if name == "id" and value is not None}

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            self.scripts.append(data)
        elif self.tags and self.tags[-1] != "style":
            self.text += data


@pytest.fixture(scope="module")
def labelled() -> str:
    return page(content("a", "b"))


def test_a_report_has_all_its_parts(labelled: str) -> None:
    found = Page(labelled)
    assert {"overview", "timelines", "incidents", "cards", "scores", "confusion", "quality"} <= found.ids
    assert {"timeline-0", "timeline-1", "incident-0"} <= found.ids
    assert set(json.loads(found.scripts[0])) == {"timeline-0", "timeline-1", "precision-recall", "reliability"}
    assert "6 alarms: 4 packet_loss, 2 congestion; longest packet_loss 10:41:00 to 10:41:26 (26 s, " in found.text
    assert "wrong name" in found.text and "false alarm" in found.text


def test_without_labels_there_are_no_scores_and_it_says_so() -> None:
    found = Page(page(content("a", labelled=False)))
    assert not {"scores", "confusion"} & found.ids and "no-labels" in found.ids
    assert set(json.loads(found.scripts[0])) == {"timeline-0"}
    assert "truth" not in str(json.loads(found.scripts[0])) and "verdict" not in found.text


def test_the_page_is_one_file_that_asks_for_nothing(labelled: str) -> None:
    found = Page(labelled)
    outside = [value for name, value in found.attributes if name in ("src", "href", "action", "data", "srcset")]
    assert all(str(value).startswith(("#", "data:")) for value in outside)
    assert not {"iframe", "object", "embed"} & set(found.tags) and found.tags.count("script") == 3
    assert "@import" not in pages._text("report.css") and "url(" not in pages._text("report.css")
    assert len(labelled.encode()) < 10e6


def test_whatever_comes_from_data_stays_text() -> None:
    names = {"congestion": f"c{HOSTILE}", "rtt_ms": f"m{HOSTILE}", "normal": f"n{HOSTILE}"}
    made = content("a", names=names, bundle=HOSTILE, scope=HOSTILE, trained=HOSTILE)
    made = replace(made, series=tuple(replace(one, name=f"s{HOSTILE}") for one in made.series))
    rows, model = made.scored  # type: ignore[misc]
    series = np.full(len(rows.series), f"s{HOSTILE}", dtype=object)
    alarms = replace(made.alarms, series=np.full(len(made.alarms), f"s{HOSTILE}", dtype=object))
    given = {**reason(made, 0), "against": HOSTILE, "times": [HOSTILE]}
    given["metrics"][0]["sentence"] = HOSTILE
    made = replace(made, alarms=alarms, scored=(replace(rows, series=series), model), reasons={0: given})
    text = page(made)
    plain = Page(text)
    assert plain.tags.count("script") == 3 and "img" not in plain.tags
    assert not [name for name, _ in plain.attributes if name.startswith("on") and name != "onsubmit"]
    assert plain.text.count(f"s{HOSTILE}") >= 4  # overview, sentence, timeline, table, card
    figures = json.loads(plain.scripts[0])
    assert "<script" not in plain.scripts[0] and "timeline-0" in figures
    assert "<img" not in json.dumps(figures)  # plotly reads some tags: these are escaped twice


@pytest.mark.parametrize(
    "name",
    [
        "</script><script>alert(1)</script>",
        "'\"><b onmouseover=alert(1)>",
        "javascript:alert(1)",
        "a\u2028b<!--",
        "{{ 7 * 7 }}<a href='javascript:alert(1)'>x</a>&lt;script&gt;",
    ],
)
def test_a_name_adds_no_element_and_no_attribute_to_the_page(name: str) -> None:
    """The same page but for the text: a name of letters in the place of the hostile one gives the same tags."""
    pages_of = []
    for called in ("plain", name):
        made = content("a", names={"congestion": f"c{called}", "rtt_ms": f"m{called}"}, scope=called)
        made = replace(made, series=tuple(replace(one, name=called) for one in made.series))
        alarms = replace(made.alarms, series=np.full(len(made.alarms), called, dtype=object))
        pages_of.append(Page(page(replace(made, alarms=alarms, scored=None, evaluation=None))))
    plain, hostile = pages_of
    assert hostile.tags == plain.tags
    assert [key for key, _ in hostile.attributes] == [key for key, _ in plain.attributes]
    assert not [value for key, value in hostile.attributes if key in ("href", "src") and "javascript" in (value or "")]


def test_points_that_stand_for_many_rows_are_told_with_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    made = content("a", rows=2000, labelled=False)
    values = made.series[0].values.copy()
    values[777, 0] = 9.0  # a spike of one row
    made = replace(made, series=(replace(made.series[0], values=values),))
    assert "decimated" not in Page(page(made)).ids
    monkeypatch.setattr("netanomaly.report.timeline.BUDGET", 600)
    found = Page(page(made))
    assert "decimated" in found.ids and "of every 20 rows" in found.text and "two points for 20 rows" in found.text
    figure = json.loads(found.scripts[0])["timeline-0"]
    assert len(figure["times"]) == 200
    traces = {one["name"]: one for one in figure["data"] if one["type"] == "scatter"}
    y = np.frombuffer(__import__("base64").b64decode(traces["rtt_ms"]["y"]["bdata"]), dtype=np.float32)
    assert len(y) == 200 and np.nanmax(y) == 9000.0


def test_many_series_and_alarms_are_cut_off_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in {"timeline.MOST_SERIES": 1, "overview.MOST": 1, "cards.MOST": 2, "page.MOST_ROWS": 3}.items():
        monkeypatch.setattr(f"netanomaly.report.{name}", most)
    made = content("a", "b", "c")
    found = Page(page(made))
    assert "2 series with fewer alarms have no figure" in found.text
    assert "2 series with fewer alarms are not drawn" in found.text
    assert f"Cards of the 2 alarms with the largest confidence, of {len(made.alarms)}" in found.text
    assert "these are the 3 with the largest confidence" in found.text
    assert sum(name.startswith("incident-") and name != "incident-table" for name in found.ids) == 2


def test_a_gap_is_a_gap_in_lines_and_in_the_quality_of_data() -> None:
    made = content("a", labelled=False)
    kept = np.r_[0:50, 80:200]
    rows = made.series[0]
    rows = replace(rows, **{name: getattr(rows, name)[kept] for name in ("times", "values", "truth", "named")})
    found = Page(page(replace(made, series=(rows,))))
    assert "1 gap in the rows" in found.text and "31 s" in found.text and "84.5 %" in found.text
    figure = json.loads(found.scripts[0])["timeline-0"]
    assert len(figure["times"]) == len(kept) + 1  # a point without values between both sides


def test_metrics_unlike_those_of_training_are_named() -> None:
    made = content("a", labelled=False)
    names = [metric.name for metric in made.metrics]
    values = made.series[0].values.copy()
    known = reference(names, values)
    values[:, 0] *= 100
    values[:, 1] = 5.0
    values[:, 2] = np.nan
    changed = replace(made, series=(replace(made.series[0], values=values),), reference=known)
    text = Page(page(changed)).text
    assert "1 metric never measured here: loss_ratio." in text and "1 metric constant here: throughput_bps." in text
    assert "1 metric unlike the training rows: rtt_ms." in text
    assert "no drift is told" in Page(page(replace(made, reference=None))).text


def test_a_card_shows_why_if_that_is_known() -> None:
    made = content("a", labelled=False)
    text = page(replace(made, reasons={0: reason(made, 0)}))
    assert Page(text).tags.count("path") > Page(page(made)).tags.count("path")
    assert "10 -&gt; 30 (+200 %) from 10:41" in text and "rows looked up (attention)" in text
    assert "probability 0.93, with everything as usual 0.02" in text
    first = cards.cards(replace(made, reasons={0: reason(made, 0)}), pages.incidents(made))[0]
    assert [one.metric for one in first.sparks] == ["throughput_bps"]


def test_data_that_count_time_have_an_axis_of_seconds() -> None:
    from netanomaly.data.timestamps import TimeFormat
    from netanomaly.report.clock import Clock

    made = content("a", clock=Clock(TimeFormat("elapsed", "s"), SECOND))
    found = Page(page(made))
    assert json.loads(found.scripts[0])["timeline-0"]["layout"]["xaxis"]["type"] == "linear"
    assert "UTC" not in found.text


def test_a_report_without_any_alarm_says_so() -> None:
    made = content("a", labelled=False)
    nothing = np.zeros(0, dtype=np.int64)
    found = Page(page(replace(made, alarms=made.alarms[nothing])))
    assert "0 alarms on 1 series" in found.text and "no alarm in 200 rows" in found.text
    assert "cards" not in found.ids


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ConfigError, match=r"a report needs plotly: pip install 'netanomaly\[report\]'"):
        page(content("a", labelled=False))


def test_many_alarms_are_one_drawing_without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    made = content("a", labelled=False)
    found = incidents(made)
    few = overview(made, found).lines[0].alarms
    assert [one.number for one in few] == [one.number for one in found] and len(few[0].places) == 1
    monkeypatch.setattr("netanomaly.report.overview.MOST_LINKS", 2)
    monkeypatch.setattr("netanomaly.report.overview.MOST_TITLES", 2)
    many = overview(made, found).lines[0].alarms
    assert [(one.label, one.number) for one in many] == [("packet_loss", -1), ("congestion", -1)]
    assert sum(len(one.places) for one in many) == len(few)
    assert overview(made, found).lines[0].count == len(few)
