"""Our sequence model: blocks of look-ups, read out as one vector per window."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from netanomaly.model import choices
from netanomaly.model.attention import KeyValueCache
from netanomaly.model.blocks import LookupBlock
from netanomaly.model.read_out import ReadOut
from netanomaly.model.schemes import NoPositions
from netanomaly.model.sequence_model import SequenceModel
from netanomaly.model.windows import over_windows, pool, unpool


class LookupModel(SequenceModel):
    """Reads each window of a segment by looking rows up.

    With the memory `embeddings` and a read-out that one row or token asks for (`last`, `cls`), each block has one
    query per window. Else every row of the window asks.

    Args:
        make_block: makes a block; called once for each, or once for all with `share_weights`.
        depth: look-ups one after the other.
        window: L, rows of a window.
        width: D
        read_out: its kind.
        memory: where keys and values of the blocks come from.
        sliding: compute all windows of a segment at once; needs one query per window, `patch` 1, no `on_input`.
        projects_once: where every row of every window asks, queries, keys and values that belong to the row alone are
            computed once for all windows that hold it.
        share_weights: the same block at every depth.
        patch: rows that are pooled into one token before the first block.
        on_input: positions that are added to the tokens, as in the Transformer.
    """

    def __init__(
        self,
        make_block: Callable[[], LookupBlock],
        *,
        depth: int,
        window: int,
        width: int,
        read_out: choices.ReadOut = "last",
        memory: choices.Memory = "embeddings",
        sliding: bool = True,
        projects_once: bool = True,
        share_weights: bool = False,
        patch: int = 1,
        on_input: NoPositions | None = None,
    ) -> None:
        super().__init__(window, width)
        self.blocks = nn.ModuleList(make_block() for _ in range(1 if share_weights else depth))
        self.depth, self.patch = depth, patch
        self.memory, self.sliding = memory, sliding
        self.on_input = on_input or NoPositions()
        self.read_out = ReadOut(read_out, width)
        self.one_asks = memory == "embeddings" and read_out in ("last", "cls")
        self.projects_once = (
            projects_once and not self.one_asks and patch == 1 and on_input is None and read_out != "cls"
        )

    def forward(self, memory: Tensor, valid: Tensor, stride: int = 1) -> Tensor:
        """See `SequenceModel.forward`."""
        if self.projects_once:
            return over_windows(self._read_projected, self._projected(memory), valid, self.window, stride)
        if not self.sliding:
            return over_windows(self.read, memory, valid, self.window, stride)
        asking, token = self._question(memory[:, self.window - 1 :])  # (B, T, D)
        for block in self.each():
            asking = block.newest(asking, memory, valid, token=token)
        return asking[:, ::stride]

    def read(self, rows: Tensor, valid: Tensor) -> Tensor:
        """See `SequenceModel.read`."""
        rows, valid = self.tokens(rows, valid)
        if self.one_asks:
            asking, token = self._question(rows[:, -1:])  # (N, 1, D)
            for block in self.each():
                asking = block.of_windows(asking, rows, valid, token=token)
            return asking[:, 0]
        return self.read_out(self.encode(rows, valid), valid)

    def looked_up(self, rows: Tensor, valid: Tensor) -> Tensor:
        """The weights of the look-ups, their mean over heads and blocks; see `SequenceModel.looked_up`.

        Where every row asks, each counts as much as the read-out makes of it. The weights of a query are divided by
        their sum, which is 1 under softmax. A pooled token shares its weight among its measured rows; what a learned
        token in the table gets is left out.
        """
        tokens, held = self.tokens(rows, valid)  # (N, S, D), (N, S)
        asking, token = self._question(tokens[:, -1:]) if self.one_asks else (tokens, False)  # (N, Q, D)
        found = []
        for block in self.each():
            weights = block.weights(asking, tokens, held, token=token)  # (N, H, Q, S)
            found.append((weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)).mean(1))
            asking = block.of_windows(asking, tokens, held, token=token)
        by_query = torch.stack(found).mean(0)  # (N, Q, S)
        shares = by_query.new_ones(by_query.shape[:2]) if self.one_asks else self.read_out.shares(asking, held)
        by_token = torch.einsum("nq,nqs->ns", shares, by_query)[:, : self.window // self.patch]
        return unpool(by_token, valid, self.patch)

    def remember(self, rows: Tensor) -> Tensor:
        """Keys and values of every block, or more, where they belong to the row alone; see `SequenceModel.remember`."""
        if self.sliding:
            return torch.cat([block.remember(rows) for block in self._own()], dim=-1)
        return self._projected(rows) if self.projects_once else rows

    def recall(self, newest: Tensor, remembered: Tensor, valid: Tensor) -> Tensor:
        """See `SequenceModel.recall`."""
        if not self.sliding:
            return (self._read_projected if self.projects_once else self.read)(remembered, valid)
        parts = remembered.chunk(len(self.blocks), dim=-1)
        asking, token = self._question(newest[:, None])  # (N, 1, D)
        for number, block in enumerate(self.each()):
            asking = block.recall(asking, parts[number % len(parts)], valid, token=token)
        return asking[:, 0]

    def _projected(self, rows: Tensor) -> Tensor:
        """Rows, their queries in the first block, and their keys and values in all blocks that look at the rows.

        (B, S, D) to (B, S, 2 D + R ...)
        """
        looking = list(self._own())[: None if self.memory == "embeddings" else 1]
        return torch.cat([rows, looking[0].ask(rows), *(block.remember(rows) for block in looking)], dim=-1)

    def _read_projected(self, held: Tensor, valid: Tensor) -> Tensor:
        """What `read` gives, from windows of `_projected` rows. (N, L, 2 D + R ...), (N, L) to (N, width)"""
        rows, queries, remembered = held.split([self.width, self.width, held.shape[-1] - 2 * self.width], dim=-1)
        looking = len(self.blocks) if self.memory == "embeddings" else 1
        parts = remembered.chunk(looking, dim=-1)
        for number, block in enumerate(self.each()):
            if self.memory == "blocks" and number > 0:
                rows = block.of_windows(rows, rows, valid)
            else:
                asking = queries if number == 0 else None
                rows = block.recall(rows, parts[number % looking], valid, queries=asking)
        return self.read_out(rows, valid)

    def encode(self, tokens: Tensor, valid: Tensor) -> Tensor:
        """Every token of a window asks, in every block. (N, S, D), (N, S) to (N, S, D)"""
        rows = tokens
        for block in self.each():
            rows = block.of_windows(rows, tokens, valid)
        return rows

    def step(
        self, token: Tensor, valid: Tensor, caches: list[KeyValueCache] | None = None
    ) -> tuple[Tensor, list[KeyValueCache]]:
        """Row n of a causal `encode`, from token n and the keys and values of the tokens before it.

        Args:
            token: (N, 1, D)
            valid: (N, 1)
            caches: one per block, as the step before returned them; None for the first token.

        Returns:
            (N, 1, D), and the caches with the token in them.

        Raises:
            ValueError: rows depend on later ones (the mask is not causal), or the window is full.
        """
        seen = 0 if caches is None else caches[0].valid.shape[1]
        if not self.is_causal:
            raise ValueError("row by row works with the mask causal only: with another, rows depend on later ones")
        if seen == self.window // self.patch:
            raise ValueError(f"the window is full: it holds {seen} tokens")
        token = self.on_input.held(token, torch.tensor([seen], device=token.device))
        row, after = token, []
        for number, block in enumerate(self.each()):
            row, cache = block.step(row, token, valid, None if caches is None else caches[number])
            after.append(cache)
        return row, after

    @property
    def is_causal(self) -> bool:
        """Whether no row depends on later ones."""
        masks = [block.attention.mask for block in self.each()]
        return all(mask.causal and mask.prefix == 0 for mask in masks)

    def tokens(self, rows: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """What the blocks see of the rows of a window. (N, L, D), (N, L) to (N, S, D), (N, S)"""
        rows, valid = pool(rows, valid, self.patch)
        if not self.one_asks:
            rows, valid = self.read_out.prepare(rows, valid)
        return self.on_input.held(rows, torch.arange(rows.shape[1], device=rows.device)), valid

    def _question(self, newest: Tensor) -> tuple[Tensor, bool]:
        """What asks in the place of the newest rows, and whether it is a token. (..., D)"""
        if self.read_out.kind == "cls":
            return self.read_out.token.expand_as(newest), True
        return newest, False

    def each(self) -> Iterator[LookupBlock]:
        """The blocks in the order of their work."""
        own = list(self._own())
        for number in range(self.depth):
            yield own[number % len(own)]

    def _own(self) -> Iterator[LookupBlock]:
        """The blocks that have weights of their own."""
        yield from self.blocks  # type: ignore[misc]
