"""Self-attention as a look-up in a table of keys and values.

Every row of the recent past has a key and a value. A row asks with its query: scores with all keys, softmax, and the
weighted mean of the values is the answer. As the product stands, positions are added to the projected q and k and
never to v:

    score(i, j) = (q_i + p_i) . (k_j + p_j) / sqrt(d),      answer_i = sum_j softmax_j(score(i, j)) v_j

So q, k and v of a row are the same in every window that holds it; only the small table p belongs to the window.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from netanomaly.model.choices import Normalise, Scale, Score, Windowed
from netanomaly.model.fused import fused_lookup
from netanomaly.model.lookup import Lookup, Relative, lookup, lookup_weights, places
from netanomaly.model.masks import EVERYTHING, MaskRule
from netanomaly.model.schemes import NoPositions
from netanomaly.model.scores import ScoreRule
from netanomaly.model.sliding import sliding_lookup
from netanomaly.model.tiled import tiled_lookup

WAYS: dict[Windowed, Lookup] = {"reference": lookup, "sdpa": fused_lookup, "tiled": tiled_lookup}


@dataclass
class KeyValueCache:
    """Keys and values of the rows so far, positions included. (N, Hk, n, d) each, valid (N, n)"""

    keys: Tensor
    values: Tensor
    valid: Tensor


class Attention(nn.Module):
    """Multi-head attention of rows to their window.

    Args:
        width: D, of an embedding.
        n_heads: H heads of queries; each is d = D / H wide.
        n_kv_heads: Hk heads of keys and values, each shared by H / Hk heads of queries: H is multi-head, 1 is
            multi-query, what lies between is grouped-query attention (Ainslie et al. 2023).
        length: L, rows of a window.
        positions: how places enter.
        score: `dot` or `distance`.
        scale: `sqrt_dim` divides scores by sqrt(d); `init` starts with smaller projections instead (T5, Raffel et al.
            2020), those of queries and keys by d^(1/4) each; a number divides the scores: a temperature.
        normalise: `softmax`, or `none` for plain exp(score) weights.
        mask: who sees whom.
        way: how windows are computed one by one.
    """

    def __init__(
        self,
        width: int,
        n_heads: int,
        length: int,
        positions: NoPositions,
        *,
        n_kv_heads: int | None = None,
        score: Score = "dot",
        scale: Scale = "sqrt_dim",
        normalise: Normalise = "softmax",
        mask: MaskRule = EVERYTHING,
        way: Windowed = "reference",
    ) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads or n_heads
        self.length, self.mask, self.normalise = length, mask, normalise
        head = width // n_heads  # d
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, self.n_kv_heads * head, bias=False)  # in a plain softmax it would cancel
        self.value = nn.Linear(width, self.n_kv_heads * head)
        self.output = nn.Linear(width, width)
        if scale == "init":
            with torch.no_grad():  # fresh scores are those of sqrt_dim, if positions start smaller by as much
                for part in (self.query.weight, self.query.bias, self.key.weight):
                    part.div_(head**0.25)
        self.positions = positions
        self.score = ScoreRule(score, _divisor(scale, head))
        self._lookup = WAYS[way]

    def newest(self, asking: Tensor, memory: Tensor, valid: Tensor, *, token: bool = False) -> Tensor:
        """The newest row of every window asks the window: all windows at once, O(L) per row.

        Args:
            asking: what the newest rows ask with. (B, T, D)
            memory: rows to look up. (B, T + L - 1, D)
            valid: which of them were measured. (B, T + L - 1)
            token: a learned token asks in the place of the newest row.

        Returns:
            (B, T, D)
        """
        length = min(self.length, self.mask.local or self.length)  # causal or not, the newest row sees all before it
        memory, valid = memory[:, self.length - length :], valid[:, self.length - length :]
        queries, keys, values = self._projected(asking, memory)
        vectors, relative = self.positions.vectors(), self.positions.relative(length)
        if vectors is None:  # only distances matter: count places through the whole segment
            row = torch.arange(memory.shape[1], device=memory.device)  # (T + L - 1,)
            queries, keys = self.positions.asking(queries, row[length - 1 :]), self.positions.held(keys, row)
        else:
            queries = self.positions.asking(queries, torch.tensor([self.length - 1]), token=token)
            vectors = vectors[-length:]
        place_vectors, place_terms = self._at_places(keys, vectors, relative)
        found = sliding_lookup(
            self.score.asking(queries),
            self.score.held(keys),
            values,
            valid,
            length=length,
            place_vectors=place_vectors,
            place_terms=place_terms,
            place_values=None if relative is None or relative.values is None else _by_place(relative.values),
            normalise=self.normalise,
        )  # (B, H, T, d)
        return self._joined(found)

    def _at_places(
        self, keys: Tensor, vectors: Tensor | None, relative: Relative | None
    ) -> tuple[Tensor | None, Tensor | None]:
        """What the places of each window add to its keys, (L, e), and to its scores, (B or 1, H, T or 1, L)."""
        if vectors is not None:
            return self.score.of_places(vectors), self.score.of_places_and_keys(keys, vectors, self.n_heads)
        if relative is not None and relative.bias is not None:
            return None, _by_place(relative.bias.T).T[None, :, None]
        if relative is not None and relative.keys is not None:
            return _by_place(relative.keys), None
        return None, None

    def of_windows(self, asking: Tensor, memory: Tensor, valid: Tensor, *, token: bool = False) -> Tensor:
        """The last rows of each window ask it: all of them, or the newest alone.

        Args:
            asking: (N, Q, D), N windows.
            memory: (N, L, D)
            valid: (N, L)
            token: a learned token asks in the place of the newest row.

        Returns:
            (N, Q, D)
        """
        return self.recall(self.query(asking), self.remember(memory), valid, token=token)

    def weights(self, asking: Tensor, memory: Tensor, valid: Tensor, *, token: bool = False) -> Tensor:
        """What the rows of each window count in the answers of `of_windows`, in every head. (N, H, Q, L)"""
        queries, keys, _ = self._projected(asking, memory)
        at, held = places(queries.shape[2], keys.shape[2], keys.device)
        return lookup_weights(
            self.score.asking(self.positions.asking(queries, at, token=token)),
            self.score.held(self.positions.held(keys, held)),
            valid,
            mask=self.mask,
            relative=self.positions.relative(keys.shape[2]),
            normalise=self.normalise,
        )

    def remember(self, memory: Tensor) -> Tensor:
        """Keys and values of rows, without positions: all that later look-ups need of them. (N, S, D) to (N, S, R)"""
        return torch.cat([self.key(memory), self.value(memory)], dim=-1)

    def recall(self, queries: Tensor, remembered: Tensor, valid: Tensor, *, token: bool = False) -> Tensor:
        """What `of_windows` gives, from what asks projected by `query`, and what `remember` gave of the rows.

        (N, Q, D), (N, L, R), (N, L) to (N, Q, D)
        """
        queries = self._heads(queries, self.n_heads)
        keys, values = (self._heads(part, self.n_kv_heads) for part in remembered.chunk(2, dim=-1))
        at, held = places(queries.shape[2], keys.shape[2], keys.device)
        return self._look_up(
            self.positions.asking(queries, at, token=token), self.positions.held(keys, held), values, valid
        )

    def step(
        self, row: Tensor, memory: Tensor, valid: Tensor, cache: KeyValueCache | None
    ) -> tuple[Tensor, KeyValueCache]:
        """The next row of each window asks all rows up to itself: a causal look-up, one row at a time.

        Args:
            row: what the row asks with. (N, 1, D)
            memory: what it is remembered as. (N, 1, D)
            valid: (N, 1)
            cache: the rows before it; None for the first.

        Returns:
            What row n of a causal `of_windows` over the whole window is, (N, 1, D), and the cache with the row in it.
        """
        queries, keys, values = self._projected(row, memory)
        at = torch.tensor([0 if cache is None else cache.keys.shape[2]], device=keys.device)
        queries, keys = self.positions.asking(queries, at), self.positions.held(keys, at)
        if cache is not None:
            keys, values = torch.cat([cache.keys, keys], dim=2), torch.cat([cache.values, values], dim=2)
            valid = torch.cat([cache.valid, valid], dim=1)
        return self._look_up(queries, keys, values, valid), KeyValueCache(keys, values, valid)

    def _look_up(self, queries: Tensor, keys: Tensor, values: Tensor, valid: Tensor) -> Tensor:
        """Positioned queries, keys and values to answers, (N, Q, D)"""
        found = self._lookup(
            self.score.asking(queries),
            self.score.held(keys),
            values,
            valid,
            mask=self.mask,
            relative=self.positions.relative(keys.shape[2]),
            normalise=self.normalise,
        )  # (N, H, Q, d)
        return self._joined(found)

    def _projected(self, asking: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (N, H, Q, d), keys and values (N, Hk, S, d)"""
        queries = self._heads(self.query(asking), self.n_heads)
        keys, values = (self._heads(projection(memory), self.n_kv_heads) for projection in (self.key, self.value))
        return queries, keys, values

    @staticmethod
    def _heads(rows: Tensor, heads: int) -> Tensor:
        """(N, S, heads d) to (N, heads, S, d)"""
        return rows.unflatten(-1, (heads, -1)).transpose(1, 2)

    def _joined(self, heads: Tensor) -> Tensor:
        """(N, H, Q, d) to (N, Q, D), through the output projection"""
        joined: Tensor = self.output(heads.transpose(1, 2).flatten(2))
        return joined


def _divisor(scale: Scale, head: int) -> float:
    """What scores are divided by."""
    if scale == "sqrt_dim":
        return head**0.5
    return 1.0 if scale == "init" else scale


def _by_place(by_distance: Tensor) -> Tensor:
    """From the order of `Relative` to the places of a window whose newest row asks. (2 L - 1, ...) to (L, ...)"""
    return by_distance[len(by_distance) // 2 :].flip(0)  # distances 0 ... L - 1, then L - 1 ... 0
