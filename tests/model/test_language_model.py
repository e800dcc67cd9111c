"""A language model as the sequence model: the same answers however windows come, and only what shall train trains."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from language_models import DECODERS, SIZES, architecture
from netanomaly.build_model import build_classifier
from netanomaly.config_model import ModelConfig
from netanomaly.model import language_model
from netanomaly.model.classifier import NetworkAnomalyClassifier
from netanomaly.model.language_families import FAMILIES
from netanomaly.model.language_model import LanguageModel

WINDOW, WIDTH, CHANNELS, CLASSES, ROWS = 8, 6, 5, 3, 12
READ_OUTS = ["last", "mean", "cls", "attention"]
MODES: list[dict[str, Any]] = [
    {"train": "all"},
    {"train": "head"},
    {"train": "norms"},
    {"train": "lora", "lora_rank": 2},
]

families = pytest.mark.parametrize("model_type", FAMILIES)


def classifier(
    model_type: str = "bert", *, read_out: str = "last", dropout: float = 0.0, **choice: Any
) -> NetworkAnomalyClassifier:
    """Weights are louder than fresh ones, so that every token has a say."""
    torch.manual_seed(1)
    chosen = {"kind": "language_model", "architecture": architecture(model_type), **choice}
    sizes = {"window": WINDOW, "width": WIDTH, "stem": 2, "read_out": read_out, "dropout": dropout}
    config = ModelConfig.model_validate({**sizes, "sequence_model": chosen})
    model = build_classifier(config, WINDOW, 2, CHANNELS, CLASSES)
    with torch.no_grad():
        model.head.weight.mul_(30)
        if model_type != "t5":  # whose weights are loud already
            reader(model).align.weight.mul_(30)
            for parameter in transformer(model).parameters():
                parameter.mul_(10 if parameter.dim() > 1 else 1)
    return model


def reader(model: NetworkAnomalyClassifier) -> LanguageModel:
    assert isinstance(model.sequence_model, LanguageModel)
    return model.sequence_model


def transformer(model: NetworkAnomalyClassifier) -> nn.Module:
    return reader(model).model


def rows(seed: int = 0, length: int = ROWS) -> tuple[Tensor, Tensor]:
    """Channels and which rows were measured; the newest rows always."""
    draw = torch.Generator().manual_seed(seed)
    channels = torch.randn(2, WINDOW + length, CHANNELS, generator=draw)
    valid = torch.rand(2, WINDOW + length, generator=draw) > 0.3
    return channels, valid


def embedded(seed: int = 0) -> tuple[Tensor, Tensor]:
    """One window per segment, of embeddings; the newest row was measured, the oldest not."""
    draw = torch.Generator().manual_seed(seed)
    memory = torch.randn(2, WINDOW, WIDTH, generator=draw)
    valid = torch.rand(2, WINDOW, generator=draw) > 0.3
    valid[:, -1], valid[:, 0] = True, False
    return memory, valid


@families
@pytest.mark.parametrize("patch", [1, 4])
@torch.no_grad()
def test_a_segment_is_its_windows_one_by_one(model_type: str, patch: int) -> None:
    model = classifier(model_type, patch=patch).eval()
    channels, valid = rows()
    together = model(channels, valid)
    alone = [model(channels[:, t : t + WINDOW + 1], valid[:, t : t + WINDOW + 1])[:, 0] for t in range(ROWS)]
    torch.testing.assert_close(together, torch.stack(alone, dim=1), rtol=1e-4, atol=1e-4)
    assert together.std(dim=1).min() > 0.01


@families
@pytest.mark.parametrize("read_out", READ_OUTS)
@torch.no_grad()
def test_rows_that_were_not_measured_have_no_influence_and_the_others_have(model_type: str, read_out: str) -> None:
    model = reader(classifier(model_type, read_out=read_out)).eval()
    memory, valid = embedded()
    found = model(memory, valid)
    other = torch.randn(memory.shape, generator=torch.Generator().manual_seed(9))
    torch.testing.assert_close(model(torch.where(valid[..., None], memory, other), valid), found, rtol=0, atol=1e-5)
    for place in valid[0].nonzero().flatten().tolist():
        changed = memory.clone()
        changed[0, place] = other[0, place]
        assert (model(changed, valid) - found)[0].abs().max() > 1e-4, place
        assert torch.allclose(model(changed, valid)[1], found[1], rtol=0, atol=1e-5)


@families
@pytest.mark.parametrize("read_out", READ_OUTS)
@pytest.mark.parametrize("patch", [1, 2])
def test_windows_without_any_row_are_finite_and_so_are_gradients(model_type: str, read_out: str, patch: int) -> None:
    model = classifier(model_type, read_out=read_out, patch=patch)
    channels, valid = rows()
    valid[0] = False
    valid[1, : WINDOW // 2] = False  # the first rows of a causal model have nothing to look at
    channels.requires_grad_(True)
    masks: list[Tensor] = []
    transformer(model).register_forward_pre_hook(lambda _, __, k: masks.append(k["attention_mask"]), with_kwargs=True)
    logits = model(channels, valid)
    assert all(mask.any(dim=1).all() for mask in masks)  # never a softmax over nothing
    logits.square().sum().backward()
    assert logits.isfinite().all()
    assert channels.grad is not None
    assert channels.grad.isfinite().all()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert gradients
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("model_type", DECODERS)
@torch.no_grad()
def test_no_row_of_a_decoder_sees_later_ones(model_type: str) -> None:
    model = transformer(classifier(model_type)).eval()
    tokens, others = torch.randn(2, 1, WINDOW, 16, generator=torch.Generator().manual_seed(3))
    changed = torch.cat([tokens[:, :5], others[:, 5:]], dim=1)
    differ = (model(inputs_embeds=tokens)[0] - model(inputs_embeds=changed)[0]).abs().amax((0, 2)) > 1e-5
    assert differ.tolist() == [False] * 5 + [True] * 3


@torch.no_grad()
def test_the_read_outs_read_what_they_say() -> None:
    memory, valid = embedded()
    for read_out in ("last", "mean"):
        model = reader(classifier(read_out=read_out)).eval()
        states = model.model(inputs_embeds=model.align(memory), attention_mask=valid.long())[0]
        mean = (states * valid[..., None]).sum(1) / valid.sum(1, keepdim=True)
        expected = states[:, -1] if read_out == "last" else mean
        torch.testing.assert_close(model(memory, valid)[:, 0], expected, rtol=0, atol=1e-5)
    model = reader(classifier(read_out="cls")).eval()
    tokens = torch.cat([model.align(memory), model.read_out.token.expand(2, 1, -1)], dim=1)
    mask = torch.cat([valid, torch.ones(2, 1, dtype=torch.bool)], dim=1)
    expected = model.model(inputs_embeds=tokens, attention_mask=mask.long())[0][:, -1]
    torch.testing.assert_close(model(memory, valid)[:, 0], expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_rows_of_a_patch_are_one_token() -> None:
    memory, _ = embedded()
    valid = torch.ones(2, WINDOW, dtype=torch.bool)
    swapped = memory[:, [0, 1, 3, 2, 4, 5, 6, 7]]
    patched, plain = reader(classifier(patch=2)).eval(), reader(classifier()).eval()
    torch.testing.assert_close(patched(swapped, valid), patched(memory, valid), rtol=0, atol=1e-5)
    assert (plain(swapped, valid) - plain(memory, valid)).abs().max() > 1e-3
    tokens = plain.align(memory.unflatten(1, (-1, 2)).mean(2))  # 4 of them
    torch.testing.assert_close(
        patched(memory, valid)[:, 0], plain.model(inputs_embeds=tokens)[0][:, -1], rtol=0, atol=1e-5
    )


@families
@torch.no_grad()
def test_a_stride_is_every_nth_window(model_type: str) -> None:
    model = classifier(model_type, read_out="cls", patch=2).eval()
    channels, valid = rows()
    found = model(channels, valid, 5)
    assert found.shape == (2, 3, CLASSES)
    torch.testing.assert_close(found, model(channels, valid)[:, ::5], rtol=1e-4, atol=1e-4)


def trained(model: NetworkAnomalyClassifier, steps: int = 2) -> set[str]:
    """The parameters that these steps move."""
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    model.train()
    for seed in range(steps):
        optimizer.zero_grad()
        (model(*rows(seed)) - 1).square().mean().backward()
        optimizer.step()
    return {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}


@families
@pytest.mark.parametrize("choice", MODES, ids=lambda choice: choice["train"])
def test_what_shall_train_does_and_nothing_else(model_type: str, choice: dict[str, Any]) -> None:
    model = classifier(model_type, read_out="cls", **choice)
    moved = trained(model)
    inside = {name for name in moved if name.startswith("sequence_model.model.")}
    around = {name for name, _ in model.named_parameters() if not name.startswith("sequence_model.model.")}
    assert moved - inside == around
    assert "sequence_model.read_out.token" in around
    norms = {
        f"sequence_model.model.{place}.{name}"
        for place, module in transformer(model).named_modules()
        if "Norm" in type(module).__name__
        for name, _ in module.named_parameters()
    }
    matrices = {f"sequence_model.model.{n}" for n, p in transformer(model).named_parameters() if p.dim() > 1}
    adapters = {name for name in matrices if "lora_" in name}
    match choice["train"]:
        case "all":
            assert inside >= matrices | norms
        case "head":
            assert not inside
        case "norms":
            assert norms == inside != set()
        case "lora":
            assert adapters == inside != set()


def test_a_language_model_that_does_not_train_does_not_drop_out() -> None:
    inputs = rows()
    asleep, awake = classifier(train="head").train(), classifier(train="all").train()
    assert not any(module.training for module in transformer(asleep).modules())
    assert asleep.encoder.training
    assert torch.equal(asleep(*inputs), asleep(*inputs))
    assert not torch.equal(awake(*inputs), awake(*inputs))


def test_dropout_is_of_tokens_and_of_what_is_read() -> None:
    model = reader(classifier(train="head", dropout=0.5)).train()
    got: list[Tensor] = []
    handle = model.model.register_forward_pre_hook(
        lambda _, __, given: got.append(given["inputs_embeds"]), with_kwargs=True
    )
    read = model(*embedded())
    handle.remove()
    for values in (got[0], read):
        assert 0.2 < (values == 0).float().mean() < 0.8


@pytest.mark.parametrize(("kept", "passes"), [(2**28, 1), (0, 2)])
def test_large_steps_compute_again_in_the_backward_pass(
    kept: int, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradients = []
    for limit in (kept, 2**28):
        monkeypatch.setattr(language_model, "KEPT_FLOATS", limit)
        model = classifier(train="head", patch=2)
        calls: list[int] = []
        transformer(model).register_forward_pre_hook(lambda *_, calls=calls: calls.append(1))  # type: ignore[misc]
        model(*rows()).square().sum().backward()
        gradients.append([p.grad for p in model.parameters() if p.grad is not None])
        assert len(calls) == (passes if limit == kept else 1)
    for found, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@families
def test_there_are_no_words_no_pooler_and_no_shared_weights(model_type: str) -> None:
    state = classifier(model_type).state_dict()
    pointers = [weight.data_ptr() for weight in state.values()]
    assert len(set(pointers)) == len(pointers)
    assert not [
        name for name in state if any(word in name for word in ("word", "wte", "embed_tokens", "shared", "pooler"))
    ]


def test_the_width_is_that_of_the_language_model() -> None:
    model = classifier()
    assert reader(model).width == SIZES["bert"]["hidden_size"] != WIDTH
    assert model.head.in_features == 16
