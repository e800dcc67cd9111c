"""The families of language models: their shapes, and where adapters go."""

from __future__ import annotations

import pytest
import torch

from language_models import architecture
from netanomaly.model.language_families import FAMILIES, complete
from netanomaly.model.language_model import make_transformer

families = pytest.mark.parametrize("model_type", FAMILIES)


@families
def test_a_complete_architecture_stays_as_it_is(model_type: str) -> None:
    whole = complete(architecture(model_type))
    assert set(whole) == {"model_type", *FAMILIES[model_type].keys}
    assert complete(whole) == whole


def test_older_keys_of_rotary_positions_count() -> None:
    assert complete(architecture("llama"))["rope_parameters"]["rope_theta"] == 500.0


def test_adapters_sit_beside_every_attention_projection() -> None:
    counts = {
        "bert": 4,
        "distilbert": 4,
        "gpt2": 2,
        "llama": 4,
        "mistral": 4,
        "qwen2": 4,
        "t5": 4,
    }  # gpt2 joins q, k, v
    for model_type, count in counts.items():
        model = make_transformer(complete(architecture(model_type)), None, "lora", 2)
        adapters = {name for name, _ in model.named_parameters() if "lora_A" in name}
        assert len(adapters) == 2 * count, model_type
        assert all("att" in name.lower() for name in adapters)


@families
@torch.no_grad()
def test_fresh_adapters_change_nothing(model_type: str) -> None:
    found = []
    for train, rank in (("all", None), ("lora", 3)):
        torch.manual_seed(5)
        model = make_transformer(complete(architecture(model_type)), None, train, rank)  # type: ignore[arg-type]
        tokens = torch.randn(2, 4, 16, generator=torch.Generator().manual_seed(2))
        found.append(model.eval()(inputs_embeds=tokens)[0])
    torch.testing.assert_close(*found, rtol=0, atol=1e-6)
