"""Everything as usual: where the metrics of each row would stand if nothing had happened."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from netanomaly.data.batches import ChannelSegment
from netanomaly.data.channels import Channels
from netanomaly.data.rolling import rolling_median, rolling_sum


def usual_values(values: NDArray[np.float64], channels: Channels) -> NDArray[np.float64]:
    """The longest baseline of each metric at each row, NaN where the metric is usually missing. (T, M) to (T, M)

    Usually is in more than half of the baseline's rows, as a baseline is the median of those that are there.
    """
    length = max(channels.baselines)
    missing = rolling_sum(np.isnan(values).astype(np.float64), length)
    rows = np.minimum(np.arange(1, len(values) + 1), length)[:, None]
    return np.where(2 * missing > rows, np.nan, rolling_median(values, length))


def usual_segment(actual: ChannelSegment, usual: NDArray[np.float64], channels: Channels) -> ChannelSegment:
    """The segment with everything as usual; rows in which nothing was measured are left out in both."""
    return ChannelSegment(channels.at_usual(usual), actual.valid, actual.targets)
