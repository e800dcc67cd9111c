"""A block: a look-up in the window, then a feed-forward layer, each with a norm before and a residual around it."""

from __future__ import annotations

from torch import Tensor, nn

from netanomaly.model.attention import Attention, KeyValueCache
from netanomaly.model.choices import FeedForward, Memory
from netanomaly.model.dropout import Dropout
from netanomaly.model.feed_forward import FeedForwardLayer


class LookupBlock(nn.Module):
    """A pre-norm residual block.

    With the memory `embeddings`, keys and values come from the rows' embeddings in every block: deeper blocks ask
    better questions of the same table, and a window stays independent of the windows around it. With `blocks` they
    come from the output of the block below, as in the Transformer.

    Args:
        width: D
        attention: the look-up.
        feed_forward: its kind; `none` leaves the layer out.
        memory: where keys and values come from.
        dropout: of what each layer adds.
    """

    def __init__(
        self, width: int, attention: Attention, feed_forward: FeedForward, memory: Memory, dropout: float
    ) -> None:
        super().__init__()
        self.norm_asking = nn.LayerNorm(width)
        self.norm_memory = nn.LayerNorm(width) if memory == "embeddings" else None
        self.attention = attention
        self.norm_found = None if feed_forward == "none" else nn.LayerNorm(width)
        self.feed_forward = None if feed_forward == "none" else FeedForwardLayer(feed_forward, width)
        self.dropout = Dropout(dropout)

    def newest(self, asking: Tensor, memory: Tensor, valid: Tensor, *, token: bool) -> Tensor:
        """The newest rows of all windows of a segment. (B, T, D), (B, T + L - 1, D), (B, T + L - 1) to (B, T, D)"""
        question, table = self._normed(asking, memory)
        return self._after(asking, self.attention.newest(question, table, valid, token=token))

    def of_windows(self, asking: Tensor, memory: Tensor, valid: Tensor, *, token: bool = False) -> Tensor:
        """The last Q rows of each window. (N, Q, D), (N, L, D), (N, L) to (N, Q, D)"""
        question, table = self._normed(asking, memory)
        return self._after(asking, self.attention.of_windows(question, table, valid, token=token))

    def weights(self, asking: Tensor, memory: Tensor, valid: Tensor, *, token: bool = False) -> Tensor:
        """What the rows of each window count in the look-up of `of_windows`. (N, H, Q, L)"""
        question, table = self._normed(asking, memory)
        return self.attention.weights(question, table, valid, token=token)

    def ask(self, rows: Tensor) -> Tensor:
        """Rows as queries. (N, Q, D) to (N, Q, D)"""
        queries: Tensor = self.attention.query(self.norm_asking(rows))
        return queries

    def remember(self, memory: Tensor) -> Tensor:
        """All that look-ups need of rows that are in the table. (N, S, D) to (N, S, R)"""
        norm = self.norm_asking if self.norm_memory is None else self.norm_memory
        return self.attention.remember(norm(memory))

    def recall(
        self, asking: Tensor, remembered: Tensor, valid: Tensor, *, queries: Tensor | None = None, token: bool = False
    ) -> Tensor:
        """What `of_windows` gives, from what `remember` and, if it was called before, `ask` gave.

        (N, Q, D), (N, L, R), (N, L), (N, Q, D) to (N, Q, D)
        """
        queries = self.ask(asking) if queries is None else queries
        return self._after(asking, self.attention.recall(queries, remembered, valid, token=token))

    def step(
        self, row: Tensor, embedding: Tensor, valid: Tensor, cache: KeyValueCache | None
    ) -> tuple[Tensor, KeyValueCache]:
        """The next row of each window. (N, 1, D), (N, 1, D), (N, 1) to (N, 1, D)"""
        question, table = self._normed(row, embedding)
        found, cache = self.attention.step(question, table, valid, cache)
        return self._after(row, found), cache

    def _normed(self, asking: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """What asks, and what is looked up: the rows that ask themselves unless the memory is of embeddings."""
        question = self.norm_asking(asking)
        return question, question if self.norm_memory is None else self.norm_memory(memory)

    def _after(self, rows: Tensor, found: Tensor) -> Tensor:
        rows = rows + self.dropout(found)
        if self.feed_forward is None or self.norm_found is None:
            return rows
        return rows + self.dropout(self.feed_forward(self.norm_found(rows)))
