"""Which transformers of Hugging Face can be a language model here, and the shapes they take.

An explicit table: no class is ever looked up by a name from a file. transformers is imported only when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Family:
    """What there is to know of a model type.

    Attributes:
        model: the class in transformers without a head.
        config: the class of its configuration.
        keys: of a config.json, those that shape what is used here.
        attention: projections of its attention, as their names end; adapters go there.
        longest: the key of the longest sequence; None: any length.
        older: keys of older config.json files that the class translates to newer ones.
    """

    model: str
    config: str
    keys: tuple[str, ...]
    attention: tuple[str, ...]
    longest: str | None = "max_position_embeddings"
    older: tuple[str, ...] = ()


def _llama(name: str, *more: str) -> Family:
    """The relatives of Llama share nearly everything."""
    sizes = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    others = ("hidden_act", "max_position_embeddings", "rms_norm_eps", "rope_parameters", "attention_dropout")
    projections = ("q_proj", "k_proj", "v_proj", "o_proj")
    older = ("rope_theta", "rope_scaling")
    return Family(f"{name}Model", f"{name}Config", (*sizes, *others, *more), projections, older=older)


FAMILIES: dict[str, Family] = {
    "bert": Family(  # MiniLM too
        "BertModel",
        "BertConfig",
        (
            *("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act"),
            *("hidden_dropout_prob", "attention_probs_dropout_prob", "max_position_embeddings", "type_vocab_size"),
            "layer_norm_eps",
        ),
        ("query", "key", "value", "attention.output.dense"),
    ),
    "distilbert": Family(
        "DistilBertModel",
        "DistilBertConfig",
        (
            *("dim", "n_layers", "n_heads", "hidden_dim", "activation", "dropout", "attention_dropout"),
            *("max_position_embeddings", "sinusoidal_pos_embds"),
        ),
        ("q_lin", "k_lin", "v_lin", "out_lin"),
    ),
    "gpt2": Family(
        "GPT2Model",
        "GPT2Config",
        (
            *("n_embd", "n_layer", "n_head", "n_inner", "n_positions", "activation_function", "layer_norm_epsilon"),
            *("resid_pdrop", "embd_pdrop", "attn_pdrop", "scale_attn_weights", "scale_attn_by_inverse_layer_idx"),
        ),
        ("c_attn", "attn.c_proj"),
        longest="n_positions",
    ),
    "llama": _llama("Llama", "head_dim", "attention_bias", "mlp_bias"),
    "mistral": _llama("Mistral", "head_dim", "sliding_window"),
    "qwen2": _llama("Qwen2", "use_sliding_window", "sliding_window", "max_window_layers"),
    "t5": Family(  # its encoder
        "T5EncoderModel",
        "T5Config",
        (
            *("d_model", "d_kv", "d_ff", "num_layers", "num_heads", "feed_forward_proj", "dropout_rate"),
            *("layer_norm_epsilon", "relative_attention_num_buckets", "relative_attention_max_distance"),
        ),
        ("q", "k", "v", "o"),
        longest=None,
    ),
}


def complete(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """The architecture with every key that counts, defaults included: another version may have others.

    Raises:
        ImportError, ValueError: as `transformers_config`.
    """
    with quiet():
        config = transformers_config(architecture)
    if config.num_hidden_layers < 1:
        raise ValueError("architecture: there are no layers; a language model has one or more")
    keys = FAMILIES[architecture["model_type"]].keys
    present = {key: getattr(config, key) for key in keys if hasattr(config, key)}  # versions differ
    return {"model_type": architecture["model_type"], **present}


def longest(architecture: Mapping[str, Any]) -> int | None:
    """Tokens that a complete architecture has positions for; None: any number."""
    key = FAMILIES[architecture["model_type"]].longest
    return None if key is None else int(architecture[key])


def family_of(model_type: object, key: str = "architecture.model_type") -> Family:
    """The family of a model type. Raises ValueError naming `key` and those there are."""
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise ValueError(f"{key}: {model_type!r} is not one of {', '.join(FAMILIES)}")
    return FAMILIES[model_type]


def transformers_config(architecture: Mapping[str, Any]) -> Any:
    """The configuration as an object of transformers, with a vocabulary of one word: words are not used.

    Raises:
        ImportError: transformers is not installed.
        ValueError: the message starts with the key that is wrong.
    """
    family = family_of(architecture.get("model_type"))
    known = (*family.keys, *family.older)
    sizes = {key: value for key, value in architecture.items() if key != "model_type"}
    if unknown := sizes.keys() - set(known):
        raise ValueError(f"architecture.{min(unknown)}: unknown key; known here: {', '.join(known)}")
    import transformers
    from huggingface_hub.errors import StrictDataclassError

    try:
        return getattr(transformers, family.config)(**sizes, vocab_size=1, use_cache=False)
    except (StrictDataclassError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"architecture: {' '.join(str(error).split())}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no reports of transformers within the block."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
