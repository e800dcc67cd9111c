"""What is said of a split before training begins."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

log = logging.getLogger(__name__)


def tell_split(report: Mapping[str, Any]) -> None:
    """Tell what the parts hold and share, and what is in none of them."""
    for part in ("train", "validation", "test"):
        names = report[part]["series"]
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        log.info("%s: %d labelled rows of %d series (%s)", part, report[part]["rows"], len(names), shown or "none")
    if report["purged_rows"]:
        log.info(
            "%d rows at the boundaries are in no part: a decision depends on %d earlier rows; shorter "
            "channels.baselines or a shorter model.window leave out fewer",
            report["purged_rows"],
            report["history_rows"],
        )
    for part in ("validation", "test"):
        unknown = sorted(set(report[part]["classes"]) - set(report["train"]["classes"]))
        if unknown:
            log.warning("%s has classes that no training row has: %s", part, ", ".join(unknown))
    if report["unused_labelled_rows"]:
        log.warning("%d labelled rows are in no part of data.split", report["unused_labelled_rows"])
    shared = {pair: counts for pair, counts in report["shared"].items() if counts["rows"] or counts["series"]}
    for pair, counts in shared.items():
        log.info("%s share %d series and %d rows", pair.replace("_", " and "), counts["series"], counts["rows"])
    if not shared:
        log.info("the parts share no series and no rows")
