"""Integrated gradients: closed forms, completeness, and how many nodes it takes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from classifiers import classifier, stirred
from netanomaly.model.attribution import NODES, TOLERANCE, Attribution, integrated_gradients
from netanomaly.model.ensemble import Ensemble

SHAPE = (3, 5, 4)  # N windows, S rows, C channels


def _ends(shape: tuple[int, ...] = SHAPE, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    actual, reference = torch.randn(2, *shape, generator=draw, dtype=dtype)
    return actual, reference


def test_of_a_linear_value_the_parts_are_weights_times_differences() -> None:
    actual, reference = _ends()
    weights = torch.randn(SHAPE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = integrated_gradients(lambda x, which: (x * weights[which]).sum((1, 2)) + 7, actual, reference)
    torch.testing.assert_close(found.parts, weights * (actual - reference), rtol=0, atol=1e-12)
    torch.testing.assert_close(found.residual, torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-12)
    assert found.nodes.tolist() == [NODES[0]] * 3


def test_of_a_product_each_factor_gets_half() -> None:
    actual, _ = _ends((3, 1, 2))
    found = integrated_gradients(lambda x, _: x[:, 0, 0] * x[:, 0, 1], actual, torch.zeros_like(actual))
    half = actual.prod(-1, keepdim=True) / 2
    torch.testing.assert_close(found.parts, half.expand(3, 1, 2), rtol=0, atol=1e-12)


def test_of_a_power_one_node_too_few_is_not_exact() -> None:
    actual, reference = torch.ones(1, 1, 1, dtype=torch.float64), torch.zeros(1, 1, 1, dtype=torch.float64)
    for nodes, exact in ((2, True), (3, True), (1, False)):  # the gradient of x^4 has degree 3 = 2 n - 1 for n = 2
        found = integrated_gradients(lambda x, _: x[:, 0, 0] ** 4, actual, reference, nodes=(nodes,))
        assert (abs(found.residual.item()) < 1e-12) == exact


def _explained(nodes: tuple[int, ...] = NODES) -> Attribution:
    """The log odds of two classes of an ensemble with two windows."""
    members = [stirred(classifier(channels=4, window=window, seed=window), seed=window) for window in (7, 3)]
    model = Ensemble(members, [None, None]).double().eval()
    actual, reference = _ends((6, model.history_rows + 1, 4))
    valid = torch.rand(actual.shape[:2], generator=torch.Generator().manual_seed(2)) < 0.8

    def value(x: Tensor, which: Tensor) -> Tensor:
        logs = model.read(x, valid[which]).log_softmax(-1)
        return logs[:, 1] - logs[:, 0]

    found = integrated_gradients(value, 3 * actual, reference, nodes=nodes)
    torch.testing.assert_close(found.actual, value(3 * actual, torch.arange(6)).detach())
    assert not found.parts[~valid].any()  # rows that were not measured add nothing
    return found


def test_the_parts_are_complete_to_the_tolerance() -> None:
    found = _explained()
    wanted = found.actual - found.reference
    assert wanted.abs().max() > 0.1
    assert (found.residual.abs() <= TOLERANCE * wanted.abs().clamp(min=1)).all()


def test_more_nodes_only_where_they_are_needed() -> None:
    steep = torch.tensor([1.0, 20.0], dtype=torch.float64)
    actual, reference = torch.ones(2, 1, 1, dtype=torch.float64), -torch.ones(2, 1, 1, dtype=torch.float64)
    found = integrated_gradients(lambda x, which: torch.tanh(steep[which] * (x[:, 0, 0] - 0.37)), actual, reference)
    assert found.nodes[0] == NODES[0] < found.nodes[1]
    torch.testing.assert_close(found.parts[:, 0, 0], found.actual - found.reference, rtol=0, atol=2 * TOLERANCE)


def test_a_window_is_explained_as_if_it_were_alone() -> None:
    weights = torch.arange(1.0, 4, dtype=torch.float64)

    def value(x: Tensor, which: Tensor) -> Tensor:
        return torch.tanh(weights[which] * x.sum((1, 2)))

    actual, reference = _ends()
    together = integrated_gradients(value, actual, reference)
    for n in range(3):
        alone = integrated_gradients(lambda x, which, n=n: value(x, which + n), actual[[n]], reference[[n]])
        torch.testing.assert_close(together.parts[[n]], alone.parts)


@pytest.mark.parametrize("windows", [0, 1, 2])
def test_it_does_what_the_caller_has_switched_off_and_takes_no_windows(windows: int) -> None:
    actual, reference = _ends((windows, 2, 3))
    with torch.no_grad():
        found = integrated_gradients(lambda x, _: x.square().sum((1, 2)), actual, reference)
    torch.testing.assert_close(found.parts, actual**2 - reference**2, rtol=0, atol=1e-12)
    assert not found.parts.requires_grad
