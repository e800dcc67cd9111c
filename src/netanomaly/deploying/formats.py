"""The formats of a file that holds a window model: how each is written, and opened again as anybody would."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from netanomaly.deploying.window_model import OUTPUTS, WindowModel

Rows = NDArray[np.float64]
Answers = tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]
Run = Callable[[Rows], Answers]
"""What a file does with rows (B, R, M): label (B,), probabilities (B, K), novelty (B,)."""

ADVICE = "pip install 'netanomaly[export]', in a clone pip install -c constraints.txt -e '.[export]'"
INPUT, DESCRIPTION = "rows", "netanomaly.json"
MOST_BYTES = 2**31 - 2**24
"""Of the numbers in an ONNX file: the format ends at 2 GiB."""


@dataclass(frozen=True)
class Format:
    """A format.

    Attributes:
        libraries: that it takes beside what the package needs.
        packed: a model, an example of its input and its description, as the bytes of a file.
        opened: the file as a function.
    """

    libraries: tuple[str, ...]
    packed: Callable[[WindowModel, Rows, Mapping[str, Any]], bytes]
    opened: Callable[[Path], Run]

    def missing(self) -> str | None:
        """What the format needs and is not installed, in words; None if everything is there."""
        absent = [name for name in self.libraries if find_spec(name) is None]
        return f"this format needs {' and '.join(absent)}: {ADVICE}" if absent else None


def _exported(model: WindowModel, example: Rows) -> torch.export.ExportedProgram:
    """The model's operations, for any number of windows."""
    batch = torch.export.Dim("batch", min=1)
    return torch.export.export(model, (torch.from_numpy(example),), dynamic_shapes=({0: batch},))


def _onnx(model: WindowModel, example: Rows, description: Mapping[str, Any]) -> bytes:
    size = sum(held.numel() * held.element_size() for held in model.state_dict().values())
    if size > MOST_BYTES:
        raise ValueError(f"the weights are {size / 2**30:.1f} GiB, and a file of ONNX ends at 2 GiB")
    with _quiet():
        program = torch.onnx.export(
            _exported(model, example),
            dynamo=True,
            input_names=[INPUT],
            output_names=list(OUTPUTS),
            verbose=False,
        )
    if program is None:  # what the types allow
        raise ValueError("torch.onnx gave nothing")
    program.model.metadata_props.update({f"netanomaly.{key}": json.dumps(one) for key, one in description.items()})
    packed: bytes = program.model_proto.SerializeToString()
    return packed


def _open_onnx(path: Path) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(rows: Rows) -> Answers:
        label, probabilities, novelty = session.run(list(OUTPUTS), {INPUT: rows})
        return label, probabilities, novelty

    return run


def _torch_export(model: WindowModel, example: Rows, description: Mapping[str, Any]) -> bytes:
    packed = io.BytesIO()
    with _quiet():
        torch.export.save(
            _exported(model, example), packed, extra_files={DESCRIPTION: json.dumps(description, ensure_ascii=False)}
        )
    return packed.getvalue()


def _open_torch_export(path: Path) -> Run:
    with _quiet():
        model = torch.export.load(io.BytesIO(path.read_bytes())).module()

    @torch.no_grad()
    def run(rows: Rows) -> Answers:
        label, probabilities, novelty = model(torch.from_numpy(rows))
        return label.numpy(), probabilities.numpy(), novelty.numpy()

    return run


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch says to those who write exporters."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnx_ir", "onnxscript")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*LeafSpec.*", category=FutureWarning)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


FORMATS: dict[str, Format] = {
    "onnx": Format(("onnx", "onnxruntime", "onnxscript"), _onnx, _open_onnx),
    "torch-export": Format((), _torch_export, _open_torch_export),
}
