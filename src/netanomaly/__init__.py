"""netanomaly: names the state of a network at every moment from windows of its metrics.

predictor = netanomaly.load("runs/quickstart")
labelled = predictor.predict(frame)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from netanomaly.allocator import keep_freed_memory
    from netanomaly.config import Config, load_config
    from netanomaly.errors import BundleError, ConfigError, DataError, NetanomalyError, TrainingError
    from netanomaly.predictor import Predictor, load
    from netanomaly.run import train
    from netanomaly.scoring import evaluate
    from netanomaly.streaming import StreamingPredictor

_HOMES = {
    "BundleError": "errors",
    "Config": "config",
    "ConfigError": "errors",
    "DataError": "errors",
    "NetanomalyError": "errors",
    "Predictor": "predictor",
    "StreamingPredictor": "streaming",
    "TrainingError": "errors",
    "evaluate": "scoring",
    "keep_freed_memory": "allocator",
    "load": "predictor",
    "load_config": "config",
    "train": "run",
}

__all__ = [
    "BundleError",
    "Config",
    "ConfigError",
    "DataError",
    "NetanomalyError",
    "Predictor",
    "StreamingPredictor",
    "TrainingError",
    "evaluate",
    "keep_freed_memory",
    "load",
    "load_config",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import netanomaly` and `--help` stay fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'netanomaly' has no attribute '{name}'")
    return getattr(import_module(f"netanomaly.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
