"""A batch is learnt from by several processes, each with some of its stretches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from netanomaly.data.batches import IGNORED, Batch, ChannelSegment, batches
from netanomaly.training.world import World


def own_batches(
    segments: Sequence[ChannelSegment],
    pieces: Sequence[tuple[int, int]],
    length: int,
    history: int,
    size: int,
    world: World,
) -> Iterator[Batch]:
    """Of every batch of `size` stretches those that fall to this process; see `batches`.

    A process that gets none has one of the others' stretches without its targets, since all of them have to take part
    in a step.
    """
    for first in range(0, len(pieces), size):
        whole = pieces[first : first + size]
        own = world.share(whole)
        (batch,) = batches(segments, own or whole[:1], length, history, size)
        yield batch if own else replace(batch, targets=torch.full_like(batch.targets, IGNORED))
