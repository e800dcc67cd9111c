"""All windows at once against one window after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lookups import TOLERANCE
from torch import Tensor

from netanomaly.model import band
from netanomaly.model.choices import Normalise
from netanomaly.model.lookup import for_each_query_head
from netanomaly.model.sliding import sliding_lookup


@dataclass(frozen=True)
class Segment:
    """Everything a sliding look-up is given; shapes as in `sliding_lookup`."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    valid: Tensor
    length: int
    place_vectors: Tensor | None = None
    place_terms: Tensor | None = None
    place_values: Tensor | None = None
    normalise: Normalise = "softmax"

    def leaves(self) -> list[Tensor]:
        """What has a gradient."""
        places = (self.place_vectors, self.place_terms, self.place_values)
        parts = (self.queries, self.keys, self.values, *places)
        return [part for part in parts if part is not None]

    def found(self, block: int = 32) -> Tensor:
        """All windows at once."""
        return sliding_lookup(
            self.queries,
            self.keys,
            self.values,
            self.valid,
            length=self.length,
            place_vectors=self.place_vectors,
            place_terms=self.place_terms,
            place_values=self.place_values,
            normalise=self.normalise,
            block=block,
        )

    def one_by_one(self) -> Tensor:
        """The oracle: each query scores a copy of its window."""
        keys, values = for_each_query_head(self.keys, self.values, self.queries.shape[1])
        terms = self.queries.new_zeros(*self.queries.shape[:3], self.length)
        if self.place_terms is not None:
            terms = terms + self.place_terms
        if self.place_vectors is not None:
            terms = terms + self.queries @ self.place_vectors.T
        answers = []
        for t in range(self.queries.shape[2]):
            held = slice(t, t + self.length)
            valid = self.valid[:, None, held]  # (B, 1, L)
            scores = torch.einsum("bhe,bhle->bhl", self.queries[:, :, t], keys[:, :, held]) + terms[:, :, t]
            scores = scores.masked_fill(~valid, torch.finfo(scores.dtype).min)
            weights = scores.softmax(-1) if self.normalise == "softmax" else scores.exp() * valid
            shown = values[:, :, held] if self.place_values is None else values[:, :, held] + self.place_values
            answers.append(torch.einsum("bhl,bhld->bhd", weights, shown))
        return torch.stack(answers, dim=2)


def _segment(
    targets: int,
    length: int,
    dtype: torch.dtype = torch.float64,
    *,
    batch: int = 2,
    kv_heads: int = 2,
    shared: int = 1,
    share: float = 0.7,
    place_vectors: bool = True,
    place_terms: tuple[bool, bool, bool] | None = (True, True, True),
    place_values: bool = False,
    seed: int = 0,
) -> Segment:
    draw = torch.Generator().manual_seed(seed)
    heads, rows = kv_heads * shared, targets + length - 1

    def numbers(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw, dtype=torch.float64).to(dtype).requires_grad_()

    return Segment(
        numbers(batch, heads, targets, 4),
        numbers(batch, kv_heads, rows, 4),
        numbers(batch, kv_heads, rows, 3),
        torch.rand(batch, rows, generator=draw) < share,
        length,
        numbers(length, 4) if place_vectors else None,
        None if place_terms is None else numbers(*_unless(place_terms, batch, heads, targets), length),
        numbers(length, 3) if place_values else None,
    )


def _unless(own: tuple[bool, bool, bool], *sizes: int) -> list[int]:
    """A size where terms are of their own, 1 where they are shared."""
    return [size if each else 1 for each, size in zip(own, sizes, strict=True)]


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    """Of every size, with every kind of terms."""
    segment = _segment(
        draw(st.integers(1, 20)),
        draw(st.integers(1, 12)),
        draw(st.sampled_from(list(TOLERANCE))),
        batch=draw(st.integers(1, 3)),
        kv_heads=draw(st.integers(1, 2)),
        shared=draw(st.integers(1, 2)),
        share=draw(st.sampled_from([1.0, 0.7, 0.2, 0.0])),
        place_vectors=draw(st.booleans()),
        place_terms=draw(st.none() | st.tuples(st.booleans(), st.booleans(), st.booleans())),
        place_values=draw(st.booleans()),
        seed=draw(st.integers(0, 2**16)),
    )
    return replace(segment, normalise=draw(st.sampled_from(["softmax", "none"])))


@settings(max_examples=120, deadline=None)
@given(segment=segments(), block=st.integers(1, 24), at_once=st.integers(1, 5))
def test_values_and_gradients_are_those_window_by_window(segment: Segment, block: int, at_once: int) -> None:
    tolerance = TOLERANCE[segment.queries.dtype]
    with mock.patch.object(band, "CELLS", at_once * block * (block + segment.length - 1)):
        found = segment.found(block)
    expected = segment.one_by_one()
    _close(found, expected, tolerance)
    leaves, weight = segment.leaves(), torch.randn(found.shape, generator=torch.Generator().manual_seed(1)).to(found)
    ours, theirs = (torch.autograd.grad((answers * weight).sum(), leaves) for answers in (found, expected))
    for one, other in zip(ours, theirs, strict=True):
        _close(one, other, 10 * tolerance)


def _close(found: Tensor, expected: Tensor, tolerance: float) -> None:
    """Against the largest number: plain exp(score) weights may be thousands that cancel."""
    largest = max(1.0, expected.abs().max().item())
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * largest)


@pytest.mark.parametrize("length", [1, 31, 32, 33, 64, 100])
@pytest.mark.parametrize("targets", [1, 31, 32, 33, 65])
def test_windows_shorter_and_longer_than_the_block(targets: int, length: int) -> None:
    segment = _segment(targets, length, place_values=True)
    torch.testing.assert_close(segment.found(), segment.one_by_one(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("normalise", ["softmax", "none"])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_windows_without_any_valid_row_are_finite_and_alike_in_both(dtype: torch.dtype, normalise: Normalise) -> None:
    segment = replace(_segment(40, 8, dtype), normalise=normalise)
    segment.valid[:, 5:30] = False  # longer than a window
    found = segment.found()
    assert found.isfinite().all()
    expected, terms = segment.one_by_one(), replace(segment, values=segment.values.abs()).one_by_one()
    # rounding errors are those of the terms, which without a softmax are large and cancel out
    assert ((found - expected).abs() <= TOLERANCE[dtype] * (1 + terms)).all()


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_large_scores_do_not_let_masked_rows_in(size: float) -> None:
    segment = _segment(40, 8, torch.float32, share=0.5)
    segment = replace(segment, queries=segment.queries * size)
    hidden = ~segment.valid[:, None, :, None]
    spoilt = replace(
        segment, keys=segment.keys.masked_fill(hidden, 1e3), values=segment.values.masked_fill(hidden, 1e3)
    )
    kept = segment.valid.unfold(1, 8, 1).any(-1)[:, None, :, None]
    assert torch.equal(segment.found() * kept, spoilt.found() * kept)


@pytest.mark.parametrize("normalise", ["softmax", "none"])
def test_a_window_does_not_see_rows_outside_it(normalise: Normalise) -> None:
    segment = replace(_segment(40, 8, share=1.0), normalise=normalise)
    outside = torch.ones(1, 1, 47, 1, dtype=torch.bool)
    outside[:, :, 20:28] = False  # the window of target 20
    changed = replace(
        segment, keys=segment.keys.masked_fill(outside, 1e2), values=segment.values.masked_fill(outside, 1e4)
    )
    torch.testing.assert_close(changed.found()[:, :, 20], segment.found()[:, :, 20], rtol=0, atol=1e-10)


@pytest.mark.parametrize("normalise", ["softmax", "none"])
@pytest.mark.parametrize("share", [0.5, 0.0])
def test_gradcheck(normalise: Normalise, share: float) -> None:
    segment = replace(_segment(4, 3, batch=1, shared=2, share=share, place_values=True), normalise=normalise)

    def run(*leaves: Tensor) -> Tensor:
        names = ("queries", "keys", "values", "place_vectors", "place_terms", "place_values")
        return replace(segment, **dict(zip(names, leaves, strict=True))).found(block=3)  # type: ignore[arg-type]

    assert torch.autograd.gradcheck(run, segment.leaves())


@pytest.mark.parametrize("shape", [(1, 20), (3, 2), (8, 4), (1, 1), (2, 9)])
@pytest.mark.parametrize("cells", [1, 2000, 10**6])
def test_blocks_that_are_taken_together_share_no_row(
    shape: tuple[int, int], cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(band, "CELLS", cells)
    (groups, blocks), length, block = shape, 9, 4
    numbers = torch.arange(groups * (blocks * block + length - 1)).view(groups, -1, 1)
    bands = band.Bands(torch.empty(groups, blocks * block, 1), length, block, apart=True)
    seen = torch.zeros(groups, blocks)
    for at in bands:
        taken = bands.spans(numbers)[at].flatten()
        assert len(taken.unique()) == len(taken)
        seen[at] += 1
    assert (seen == 1).all()


def test_one_block_at_a_time_where_no_more_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(band, "CELLS", 1)
    segment = _segment(70, 9)
    torch.testing.assert_close(segment.found(), segment.one_by_one(), rtol=0, atol=1e-12)


def test_no_windows_have_no_answers() -> None:
    keys, values = torch.randn(2, 1, 7, 4), torch.randn(2, 1, 7, 3)
    valid = torch.ones(2, 7, dtype=torch.bool)
    assert sliding_lookup(torch.randn(2, 2, 0, 4), keys, values, valid, length=8).shape == (2, 2, 0, 3)
