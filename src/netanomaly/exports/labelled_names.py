"""Names as Prometheus and Grafana write them: `rtt_ms{link="fra-ams"}`."""

from __future__ import annotations

import re

_NAME = re.compile(r"(?P<metric>[^{}]*?)\s*\{(?P<labels>.*)\}\s*")
_LABEL = re.compile(r"([A-Za-z_]\w*)\s*=\s*\"?([^\",}]*)\"?")


def split_name(name: str) -> tuple[str, dict[str, str]] | None:
    """The metric and the labels of a name; None if it has no labels."""
    match = _NAME.fullmatch(name)
    labels = dict(_LABEL.findall(match["labels"])) if match else {}
    if match is None or not labels:
        return None
    return match["metric"] or labels.pop("__name__", "value"), labels
