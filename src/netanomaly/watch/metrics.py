"""What a watch at work tells Prometheus of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from netanomaly import __version__
from netanomaly.alarms.live import LiveAlarms
from netanomaly.prometheus.alertmanager import Alertmanager
from netanomaly.streaming import StreamingPredictor
from netanomaly.watch.counts import BOUNDS, Counts

if TYPE_CHECKING:
    from prometheus_client.core import Metric


@dataclass(frozen=True)
class WatchMetrics:
    """Reads the figures of a watch; may be asked by another thread.

    Attributes:
        bundle: directory that was loaded.
        alertmanager: None: there is none.
    """

    stream: StreamingPredictor
    alarms: LiveAlarms
    counts: Counts
    bundle: str
    alertmanager: Alertmanager | None = None

    def collect(self) -> Iterator[Metric]:
        """All of them as they are now."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

        facts = self.stream.predictor.facts
        about = {"version": __version__, "bundle": self.bundle, "created": str(facts.get("created", ""))}
        yield InfoMetricFamily("netanomaly_build", "The program and its bundle.", about)
        counts = self.counts
        yield CounterMetricFamily("netanomaly_rows", "Rows that came, taken or not.", counts.lines)
        left_out, answered = dict(counts.left_out), dict(counts.answered)  # copied at once: others go on counting
        yield _by("netanomaly_rows_left_out", "Rows that were left out.", "reason", left_out)
        known = {**dict.fromkeys(self.stream.predictor.classes, 0), **answered}
        yield _by("netanomaly_predictions", "Rows that were answered, by label.", "class", known)
        yield self._durations()
        raised = dict(self.alarms.opened)
        names = self.alarms.rule.thresholds
        yield _by("netanomaly_incidents", "Alarms raised.", "class", {**dict.fromkeys(names, 0), **raised})
        still = Counter(incident.label for incident in self.alarms.open)
        gauge = GaugeMetricFamily("netanomaly_open_incidents", "Incidents that go on.", labels=["class"])
        for name in names:
            gauge.add_metric([name], still[name])
        yield gauge
        yield GaugeMetricFamily("netanomaly_series", "Series that are known.", len(self.stream.alive))
        yield CounterMetricFamily("netanomaly_series_begun_again", "Series that started anew.", counts.begun_again)
        if counts.newest is not None:
            help_text = "Time of the latest row that was answered."
            yield GaugeMetricFamily("netanomaly_last_row_timestamp_seconds", help_text, counts.newest / 1e9)
        if (sender := self.alertmanager) is not None:
            yield CounterMetricFamily("netanomaly_alerts_sent", "Alerts that Alertmanager took.", sender.sent)
            yield CounterMetricFamily("netanomaly_alerts_dropped", "Alerts that were lost.", sender.dropped)
            yield CounterMetricFamily("netanomaly_alert_failures", "Requests that failed.", sender.failures)

    def _durations(self) -> Metric:
        from prometheus_client.core import HistogramMetricFamily

        within = dict(self.counts.within)
        sums = accumulate(within.get(bound, 0) for bound in BOUNDS)
        buckets = [(str(bound).replace("inf", "+Inf"), float(count)) for bound, count in zip(BOUNDS, sums, strict=True)]
        help_text = "From the arrival of rows, those that came together, to their answers."
        return HistogramMetricFamily("netanomaly_batch_duration_seconds", help_text, buckets, self.counts.seconds)


def _by(name: str, help_text: str, label: str, counts: dict[str, int]) -> Metric:
    """A counter with one label."""
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(name, help_text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family
