"""A Hugging Face transformer as the sequence model: windows of embeddings take the place of its words.

Nothing here reaches the network or runs code that comes with weights: classes come from an explicit table, weights
from local safetensors files. transformers and peft are imported only when a language model is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from netanomaly.model import choices
from netanomaly.model.dropout import Dropout
from netanomaly.model.language_families import FAMILIES, complete, family_of, quiet, transformers_config
from netanomaly.model.read_out import ReadOut
from netanomaly.model.sequence_model import SequenceModel
from netanomaly.model.windows import over_windows, pool

Train = Literal["all", "head", "norms", "lora"]

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
LEFT_OUT = re.compile(
    r"pooler|(^|\.)(cls|lm_head|vocab_\w+|qa_outputs|classifier|score)\.|^decoder\.|position_ids|attn\.(masked_)?bias$|inv_freq"
)
"""Weights of a file that are not needed: heads, poolers, T5's decoder, and constants that older versions saved."""
KEPT_FLOATS = 2**28
"""Activations a training step may keep for the backward pass, 1 GiB; beyond that they are computed again."""
FLOATS_PER_UNIT = 20
"""About how many a transformer keeps per token, layer and unit of its width."""


class LanguageModel(SequenceModel):
    """Reads each window as a sentence: pooled to tokens, aligned to the model's width, read, and read out.

    Args:
        model: the transformer, as `make_transformer` makes it.
        embedding: D, of what it gets.
        window: L, rows of a window.
        read_out: its kind.
        patch: rows that are pooled into one token.
        dropout: of the aligned tokens and of what is read.
        asleep: the transformer stays as it is when evaluated: it does not train, so neither does its dropout.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        embedding: int,
        window: int,
        read_out: choices.ReadOut = "last",
        patch: int = 1,
        dropout: float = 0.0,
        asleep: bool = False,
    ) -> None:
        config: Any = model.config
        super().__init__(window, config.hidden_size)
        self.patch, self.asleep = patch, asleep
        self.align = nn.Linear(embedding, self.width)
        self.model = model
        self.read_out = ReadOut(read_out, self.width)
        self.dropout = Dropout(dropout)
        self._floats = FLOATS_PER_UNIT * config.num_hidden_layers * self.width  # per token
        self.train(self.training)

    def train(self, mode: bool = True) -> LanguageModel:
        """As of any module, but what does not train does not drop out."""
        super().train(mode)
        if self.asleep:
            self.model.eval()
        return self

    def forward(self, memory: Tensor, valid: Tensor, stride: int = 1) -> Tensor:
        """See `SequenceModel.forward`."""
        windows = len(memory) * (1 + (memory.shape[1] - self.window) // stride)
        tokens = windows * (self.window // self.patch)
        return over_windows(
            self.read, memory, valid, self.window, stride, recompute=tokens * self._floats > KEPT_FLOATS
        )

    def read(self, rows: Tensor, valid: Tensor) -> Tensor:
        """See `SequenceModel.read`."""
        rows, valid = pool(rows, valid, self.patch)  # (N, S, D), (N, S)
        tokens, valid = self.read_out.prepare(self.dropout(self.align(rows)), valid)  # (N, S or S + 1, width)
        seen = valid | ~valid.any(1, keepdim=True)  # where nothing was measured all is seen: no softmax over nothing
        states: Tensor = self.model(inputs_embeds=tokens, attention_mask=seen.long()).last_hidden_state
        return self.dropout(self.read_out(states, valid))


def make_transformer(
    architecture: Mapping[str, Any], path: Path | None, train: Train, lora_rank: int | None
) -> nn.Module:
    """The transformer, its parameters marked for training or not.

    Args:
        architecture: `model_type` and sizes.
        path: directory of its weights; None: random ones.
        train: which of its parameters learn.
        lora_rank: of the adapters, with `lora`.

    Raises:
        ImportError: transformers or peft is not installed.
        ValueError: the message starts with the key that is wrong.
    """
    with quiet():
        model = _fresh(architecture) if path is None else _pretrained(architecture, path)
        # What is read never comes as words, and no pooled sentence is asked for: bundles and memory do without.
        model.set_input_embeddings(nn.Identity())
        if hasattr(model, "pooler"):
            model.pooler = None
        if train != "all":
            model.requires_grad_(False)
        if train == "norms":
            for module in model.modules():
                module.requires_grad_(type(module).__name__.endswith(("LayerNorm", "RMSNorm")))
        if train == "lora":
            _add_adapters(model, FAMILIES[architecture["model_type"]].attention, lora_rank or 1)
    return model


def read_architecture(path: Path) -> dict[str, Any]:
    """The keys that count of a directory's config.json; weights have to be there, too.

    Raises:
        ImportError, ValueError: see `make_transformer`.
    """
    _weight_files(path)
    found = _read_json(path / CONFIG)
    if "auto_map" in found:
        raise ValueError(f"path: {path / CONFIG} has auto_map: the model brings code of its own, which is never run")
    family = family_of(found.get("model_type"), f"path: {path / CONFIG}: model_type")
    if found.get("is_decoder") and found["model_type"] == "bert":
        raise ValueError(f"path: {path / CONFIG} has is_decoder: true; a bert is read as an encoder here")
    known = ("model_type", *family.keys, *family.older)
    return complete({key: value for key, value in found.items() if key in known})


def _fresh(architecture: Mapping[str, Any]) -> Any:
    """Random weights."""
    config = transformers_config(architecture)
    import transformers

    try:
        return getattr(transformers, FAMILIES[architecture["model_type"]].model)(config).train()
    except (ValueError, RuntimeError, KeyError, TypeError, ZeroDivisionError, AssertionError) as error:
        raise ValueError(f"architecture: the sizes make no model: {' '.join(str(error).split())}") from error


@torch.no_grad()
def try_out(model: Any) -> None:
    """Let the transformer read two tokens: some sizes that do not go together show only then.

    Raises:
        ValueError: it cannot.
    """
    mode = model.training
    try:
        model.eval()(inputs_embeds=torch.zeros(1, 2, model.config.hidden_size), attention_mask=torch.ones(1, 2).long())
    except Exception as error:  # whatever transformers raises on its way
        raise ValueError(f"architecture: the sizes make no model: {' '.join(str(error).split())}") from error
    model.train(mode)


def _pretrained(architecture: Mapping[str, Any], path: Path) -> Any:
    """Weights from a directory; those that the file does not hold in the right shape are an error."""
    import transformers

    weights: dict[str, Tensor] = {}
    for file in _weight_files(path):
        try:
            weights |= load_file(file)
        except (OSError, SafetensorError) as error:
            raise ValueError(f"path: {file} cannot be read: {error}") from error
    kind = getattr(transformers, FAMILIES[architecture["model_type"]].model)
    model, found = kind.from_pretrained(  # from memory: it looks nowhere else
        None,
        config=transformers_config(architecture),
        state_dict=weights,
        dtype=torch.float32,
        ignore_mismatched_sizes=True,
        output_loading_info=True,
    )
    strange = sorted(name for name in found["unexpected_keys"] if not LEFT_OUT.search(name))
    if strange:
        raise ValueError(
            f"path: the weights in {path} hold more than the model has, such as {strange[0]}: it would be another model"
        )
    words = model.get_input_embeddings().weight  # one; the file has more, all of which are left out
    named = model.named_parameters(remove_duplicate=False)
    unused = {name for name, weight in named if weight is words or name.startswith("pooler.")}
    wrong = sorted({*found["missing_keys"], *(entry[0] for entry in found["mismatched_keys"])} - unused)
    if wrong:
        raise ValueError(
            f"path: the weights in {path} do not fit its {CONFIG}: {len(wrong)} are missing or of another shape, "
            f"such as {wrong[0]}"
        )
    return model.train()


def _weight_files(path: Path) -> list[Path]:
    """The safetensors files of a directory."""
    if not path.is_dir():
        raise ValueError(f"path: there is no directory {path} (relative to the current directory)")
    if (path / WEIGHTS).is_file():
        return [path / WEIGHTS]
    if (path / INDEX).is_file():
        return [path / name for name in _shards(path / INDEX)]
    if pickles := sorted(file.name for file in path.glob("*.bin")):
        raise ValueError(
            f"path: {path} holds {pickles[0]}, a pickle, which can run code and is not read; save it as {WEIGHTS}"
        )
    raise ValueError(f"path: there is no {WEIGHTS} in {path}")


def _shards(index: Path) -> list[str]:
    """The files that an index names: of its own directory, and safetensors."""
    weight_map = _read_json(index).get("weight_map")
    names = list(weight_map.values()) if isinstance(weight_map, dict) else []
    if not names or not all(isinstance(n, str) and n == Path(n).name and n.endswith(".safetensors") for n in names):
        raise ValueError(f"path: {index}: weight_map does not name safetensors files of its directory")
    return sorted(set(names))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"path: {path} cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"path: {path} holds no JSON object")
    return value


def _add_adapters(model: nn.Module, projections: tuple[str, ...], rank: int) -> None:
    """Low-rank adapters beside the projections, as loud as twice their product; they alone train."""
    from peft import LoraConfig, inject_adapter_in_model
    from transformers.pytorch_utils import Conv1D

    transposed = any(isinstance(module, Conv1D) for module in model.modules())
    adapters = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=list(projections), fan_in_fan_out=transposed)
    inject_adapter_in_model(adapters, model)
