"""Signals that end a training after a step: heard by one process, they end all of them after the same step."""

from __future__ import annotations

import signal

import torch
from torch import Tensor

from netanomaly.interrupts import SIGNALS, PatientSignals
from netanomaly.training.world import World


class Stops:
    """Whether to stop now.

    Alone, that is as soon as a signal has come. With others, a process says what it has heard together with the numbers
    that are added up in every step anyway, and stops when all know of it.

    Args:
        signals: those of this process.
    """

    def __init__(self, world: World, signals: PatientSignals) -> None:
        self.world, self.signals = world, signals
        self._agreed: int | None = None

    @property
    def due(self) -> bool:
        """Whether a signal has come, and all know of it."""
        return self.signals.waiting is not None if self.world.is_alone else self._agreed is not None

    def add_up(self, values: Tensor) -> Tensor:
        """The sums of a few numbers over all processes, (n,), on the device of `values`; beside them go the signals."""
        if self.world.is_alone:
            return values
        heard = torch.tensor([float(self.signals.waiting == number) for number in SIGNALS], dtype=torch.float64)
        total = self.world.sum(torch.cat([values.detach().double().cpu(), heard]))
        for number, count in zip(SIGNALS, total[-len(SIGNALS) :].tolist(), strict=True):
            if count:
                self._agreed = number  # the last one, SIGTERM, if both have come
        return total[: -len(SIGNALS)].to(values)

    def agree(self) -> None:
        """Where there is nothing to add up."""
        self.add_up(torch.zeros(0))

    def hear(self) -> None:
        """If it is time to stop, do what the signal would have done when it came: with most handlers, raise."""
        if self.world.is_alone:
            self.signals.hear()
        elif self._agreed is not None:
            number, self._agreed = signal.Signals(self._agreed), None
            self.signals.take(number)
            self.signals.hear()
