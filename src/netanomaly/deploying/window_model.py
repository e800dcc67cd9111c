"""Everything between the metrics of some rows and the answer to the newest of them, as one module."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from netanomaly.calibration import Calibration
from netanomaly.deploying.channels import WindowChannels
from netanomaly.deploying.novelty import WindowNovelty
from netanomaly.model.ensemble import Ensemble

OUTPUTS = ("label", "probabilities", "novelty")
"""What comes out for each of B windows, in this order; see `WindowModel.forward`."""


class WindowModel(nn.Module):
    """Names the newest row of each window, as `Predictor` does.

    Args:
        channels: metrics of rows to what the model sees of them.
        model: the classifier, whose executions of look-ups depend on no number in them (`reference`).
        calibration: logits to probabilities.
        novelty: None: no row is called unknown.
    """

    temperature: Tensor
    log_weights: Tensor

    def __init__(
        self, channels: WindowChannels, model: Ensemble, calibration: Calibration, novelty: WindowNovelty | None
    ) -> None:
        super().__init__()
        self.channels, self.model, self.novelty = channels, model, novelty
        self.register_buffer("temperature", torch.tensor(calibration.temperature, dtype=torch.float64))
        weights = torch.tensor(calibration.weights, dtype=torch.float64)
        self.register_buffer("log_weights", weights.log())

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The answers to the newest rows.

        Args:
            rows: metrics in base units, float64, NaN where missing. (B, R, M)

        Returns:
            label: what `predict` calls the row: the number of a class, K for `unknown`, K + 1 for `no_data`. (B,) int64
            probabilities: of the classes, calibrated; zeros where nothing was measured. (B, K) float32
            novelty: how unlike training the row is, above 1 for `unknown`. (B,) float32
        """
        valid = ~rows[:, -self.channels.rows :].isnan().all(-1)  # (B, W)
        channels = self.channels(rows)  # (B, W, C)
        logits = self.model.read(channels, valid).double()  # (B, K)
        probabilities = ((logits - self.log_weights) / self.temperature).softmax(-1)
        measured = valid[:, -1]  # (B,)
        novelty = rows.new_zeros(rows.shape[0]) if self.novelty is None else self.novelty(channels, valid)
        label = torch.where(novelty > 1, logits.shape[1], logits.argmax(-1))
        label = torch.where(measured, label, logits.shape[1] + 1)
        return label, (probabilities * measured[:, None]).float(), novelty.float()
