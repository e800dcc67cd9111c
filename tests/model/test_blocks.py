"""A block: norms before, residuals around, and where keys and values come from."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from torch import Tensor, nn

from classifiers import segment, stirred
from netanomaly.model.attention import Attention
from netanomaly.model.blocks import LookupBlock
from netanomaly.model.choices import FeedForward, Memory
from netanomaly.model.masks import MaskRule
from netanomaly.model.positions import sinusoidal_table
from netanomaly.model.schemes import AdditivePositions

WIDTH, LENGTH = 8, 5
memories = pytest.mark.parametrize("memory", ["embeddings", "blocks"])
kinds = pytest.mark.parametrize("feed_forward", get_args(FeedForward))


def _block(feed_forward: FeedForward = "swiglu", memory: Memory = "embeddings", dropout: float = 0.0) -> LookupBlock:
    torch.manual_seed(0)
    positions = AdditivePositions(sinusoidal_table(LENGTH, WIDTH // 2))
    attention = Attention(WIDTH, 2, LENGTH, positions, mask=MaskRule(causal=True))
    return stirred(LookupBlock(WIDTH, attention, feed_forward, memory, dropout)).double()


def _rows(seed: int = 0) -> tuple[Tensor, Tensor]:
    return segment(2, LENGTH, width=WIDTH, seed=seed, dtype=torch.float64)


def _norm(layer: nn.LayerNorm | None, rows: Tensor) -> Tensor:
    """Each row with mean 0 and variance 1, then scaled and shifted."""
    assert layer is not None
    centred = rows - rows.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * layer.weight + layer.bias


@kinds
@memories
def test_a_block_is_its_formula(feed_forward: FeedForward, memory: Memory) -> None:
    block = _block(feed_forward, memory)
    (asking, valid), (embeddings, _) = _rows(), _rows(seed=1)
    question = _norm(block.norm_asking, asking)
    table = question if memory == "blocks" else _norm(block.norm_memory, embeddings)
    rows = asking + block.attention.of_windows(question, table, valid)
    if block.feed_forward is not None:
        rows = rows + block.feed_forward(_norm(block.norm_found, rows))
    torch.testing.assert_close(block.of_windows(asking, embeddings, valid), rows, rtol=0, atol=1e-12)


def test_the_newest_row_and_row_by_row_are_the_same_block() -> None:
    block = _block()
    (asking, valid), (embeddings, _) = _rows(), _rows(seed=1)
    expected = block.of_windows(asking, embeddings, valid)
    newest = block.newest(asking[:, -1:], embeddings, valid, token=False)
    torch.testing.assert_close(newest, expected[:, -1:], rtol=0, atol=1e-12)
    cache, found = None, []
    for row in range(LENGTH):
        at = slice(row, row + 1)
        answer, cache = block.step(asking[:, at], embeddings[:, at], valid[:, at], cache)
        found.append(answer)
    torch.testing.assert_close(torch.cat(found, 1), expected, rtol=0, atol=1e-12)


@memories
def test_only_a_memory_of_embeddings_depends_on_them(memory: Memory) -> None:
    block = _block(memory=memory)
    (asking, valid), (embeddings, _) = _rows(), _rows(seed=1)
    moved = not torch.equal(
        block.of_windows(asking, embeddings + asking, valid), block.of_windows(asking, embeddings, valid)
    )
    assert moved == (memory == "embeddings")


@memories
@kinds
def test_there_is_no_weight_that_nothing_uses(feed_forward: FeedForward, memory: Memory) -> None:
    block = _block(feed_forward, memory)
    (asking, valid), (embeddings, _) = _rows(), _rows(seed=1)
    block.of_windows(asking, embeddings, valid).square().sum().backward()
    assert [name for name, p in block.named_parameters() if p.grad is None or not p.grad.any()] == []


def test_dropout_is_of_what_the_layers_add() -> None:
    block = _block(dropout=0.5).train()
    (asking, valid), (embeddings, _) = _rows(), _rows(seed=1)
    draws = [block.of_windows(asking, embeddings, valid) for _ in range(20)]
    assert not torch.equal(draws[0], draws[1])
    block.eval()
    assert torch.equal(block.of_windows(asking, embeddings, valid), block.of_windows(asking, embeddings, valid))
    with torch.no_grad():
        for layer in (block.attention.output, block.feed_forward.narrow):  # type: ignore[union-attr]
            layer.weight.zero_()
            layer.bias.zero_()
    assert torch.equal(block.train().of_windows(asking, embeddings, valid), asking)  # the rows themselves are kept
