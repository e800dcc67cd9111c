"""How to train, and what becomes of it, as plain values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from netanomaly.errors import TrainingError
from netanomaly.training.forward import Precision
from netanomaly.training.losses import ClassWeights


@dataclass(frozen=True)
class Recipe:
    """How to train; the fields are those of the config's section `training`."""

    epochs: int
    min_steps: int
    batch_size: int
    stretch: int
    stride: int
    learning_rate: float
    warmup: float
    weight_decay: float
    gradient_clip: float
    label_smoothing: float
    class_weights: ClassWeights
    jitter: float
    metric_dropout: float
    patience: int | None
    save_steps: int | None
    precision: Precision = "float32"
    compile: bool = False


@dataclass(frozen=True)
class EpochRecord:
    """One line of the log; the learning rate is that of the last step."""

    member: int
    epoch: int
    steps: int
    loss: float | None
    gradient_norm: float
    learning_rate: float
    validation_macro_f1: float
    seconds: float


OnEpoch = Callable[[EpochRecord], None]
"""Is told of an epoch when it has ended."""


@dataclass(frozen=True)
class Outcome:
    """What training came to; the model holds the weights of the kept epoch: the last, or with patience the best.

    Attributes:
        epochs: that were finished.
        records: of each of them, as in the log.
    """

    kept_epoch: int
    validation_macro_f1: float
    epochs: int
    seconds: float
    stopped_by: KeyboardInterrupt | TrainingError | None = None
    records: tuple[EpochRecord, ...] = ()
