"""A causal classifier row by row: each row's keys and values are computed once and kept."""

from __future__ import annotations

import torch
from torch import Tensor

from netanomaly.model.attention import KeyValueCache
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.model.lookup_model import LookupModel


class CausalDecoder:
    """Names the state at every row of a window as the rows come, O(rows so far) each.

    Row n of the window sees the rows up to itself, so its logits are those of the full causal pass over the whole
    window, whatever comes later, and those of a window that ends in it. `StreamingPredictor` labels rows without end,
    with any model; this is the textbook's way.

    Args:
        model: its look-ups have the mask `causal`, positions that know distances only, no patches, and the read-out
            `last`. Put into evaluation mode.

    Raises:
        ValueError: the model is not of that kind.
    """

    def __init__(self, model: NetworkAnomalyClassifier) -> None:
        sequence_model = model.sequence_model
        if not isinstance(sequence_model, LookupModel) or not sequence_model.is_causal:
            raise ValueError("row by row takes look-ups with the mask causal")
        if sequence_model.patch != 1 or sequence_model.read_out.kind != "last":
            raise ValueError("row by row takes the read-out last and no patches: a row is named when it comes")
        if any(block.attention.positions.vectors() is not None for block in sequence_model.each()) or (
            sequence_model.on_input.vectors() is not None
        ):
            raise ValueError(
                "row by row takes positions that know distances only (rotary, relative_bias, relative_key, none): in "
                "training the newest row has asked from the last place of its window alone"
            )
        self._model, self._lookups = model.eval(), sequence_model
        self._recent: tuple[Tensor, Tensor] | None = None  # rows that the next convolution joins
        self._caches: list[KeyValueCache] | None = None

    @torch.inference_mode()
    def step(self, channels: Tensor, valid: Tensor) -> Tensor:
        """Logits of the next row of N windows.

        Args:
            channels: (N, C)
            valid: (N,)

        Returns:
            (N, K)

        Raises:
            ValueError: the window is full.
        """
        encoder = self._model.encoder
        if self._recent is None:  # nothing was measured before the first row
            self._recent = (
                channels.new_zeros(len(channels), encoder.kernel - 1, channels.shape[1]),
                valid.new_zeros(len(valid), encoder.kernel - 1),
            )
        rows = torch.cat([self._recent[0], channels[:, None]], dim=1)  # (N, kernel, C)
        seen = torch.cat([self._recent[1], valid[:, None]], dim=1)  # (N, kernel)
        row, self._caches = self._lookups.step(encoder(rows, seen), valid[:, None], self._caches)  # (N, 1, D)
        self._recent = rows[:, 1:], seen[:, 1:]
        return self._model.classify(row[:, 0])
