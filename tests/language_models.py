"""Tiny language models of every family with random weights, and what trains them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from netanomaly.model.language_families import FAMILIES
from networks import settings

_LLAMA = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 32,
    "max_position_embeddings": 16,
}
SIZES: dict[str, dict[str, Any]] = {
    "bert": {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 16,
    },
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 16},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 16},
    "llama": {**_LLAMA, "rope_theta": 500.0},
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "t5": {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2},
}
DECODERS = ("gpt2", "llama", "mistral", "qwen2")


def architecture(model_type: str) -> dict[str, Any]:
    """Model type and sizes."""
    return {"model_type": model_type, **SIZES[model_type]}


def save(directory: Path, model_type: str, kind: str | None = None) -> torch.nn.Module:
    """A directory as Hugging Face makes it, with random weights that are not those of the next."""
    import transformers

    family = FAMILIES[model_type]
    config = getattr(transformers, family.config)(**SIZES[model_type], vocab_size=11)
    model: Any = getattr(transformers, kind or family.model)(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(directory)
    base: torch.nn.Module = model.base_model
    return base.eval()


def tree(run_dir: Path, *, read_out: str = "last", epochs: int = 1, **choice: Any) -> dict[str, Any]:
    """A config that trains a language model on the made-up network in a second or two."""
    config = settings(run_dir, training={"epochs": epochs, "stride": 2})
    sizes = {"members": 1, "window": 8, "width": 8, "stem": 3, "read_out": read_out, "dropout": 0.1}
    return {**config, "model": {**sizes, "sequence_model": {"kind": "language_model", "patch": 2, **choice}}}
