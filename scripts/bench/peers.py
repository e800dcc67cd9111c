"""What runs in the peers' environment: MiniRocket and LightGBM; see scripts/bench_speed.py. Run as a worker."""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scripts.bench.data import BATCH, METRICS, WINDOW, rows
from scripts.bench.worker import THREADS, Task, serve

warnings.filterwarnings("ignore")


def lightgbm_task(request: dict[str, Any]) -> Task:
    """LightGBM on the mean, spread, extremes, and newest value of each metric in the window."""
    from lightgbm import LGBMClassifier

    channels, labels = rows(request["rows"] + WINDOW - 1)

    def features() -> Any:
        rolling = pd.DataFrame(channels).rolling(WINDOW)
        parts = [rolling.mean(), rolling.std(), rolling.min(), rolling.max(), pd.DataFrame(channels)]
        return np.concatenate([part.to_numpy()[WINDOW - 1 :] for part in parts], axis=1)

    model = LGBMClassifier(n_estimators=100, n_jobs=THREADS, verbose=-1)
    model.fit(features()[:5000], labels[WINDOW - 1 :][:5000])

    def score() -> int:
        model.predict_proba(features())
        return int(request["rows"])

    def train() -> int:
        LGBMClassifier(n_estimators=100, n_jobs=THREADS, verbose=-1).fit(features(), labels[WINDOW - 1 :])
        return int(request["rows"])

    return train if request.get("train") else score


def minirocket_task(request: dict[str, Any]) -> Task:
    """MiniRocket and a ridge classifier on windows at every row."""
    from aeon.classification.convolution_based import MiniRocketClassifier

    channels, labels = rows(request["rows"] + WINDOW - 1)
    windows = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(channels, WINDOW, axis=0))  # (N, M, L)
    targets = labels[WINDOW - 1 :]
    model = MiniRocketClassifier(random_state=0, n_jobs=THREADS).fit(windows[:500], targets[:500])

    def score() -> int:
        model.predict(windows)
        return len(windows)

    def train() -> int:
        MiniRocketClassifier(random_state=0, n_jobs=THREADS).fit(windows, targets)
        return len(windows)

    return train if request.get("train") else score


def tst_task(request: dict[str, Any]) -> Task:
    """tsai's TST, one layer of our width and as many heads, on windows at every row."""
    # tsai imports torchvision, whose operators PyPI builds for CUDA: it registers their shapes and fails without them
    sys.modules["torchvision._meta_registrations"] = types.ModuleType("torchvision._meta_registrations")
    import torch
    from torch.nn.functional import cross_entropy
    from tsai.models.TST import TST

    channels, labels = rows(request["rows"] + WINDOW - 1)
    windows = torch.from_numpy(channels).unfold(0, WINDOW, 1)  # (N, M, L), a view
    targets = torch.from_numpy(labels[WINDOW - 1 :])
    model = TST(METRICS, 9, WINDOW, n_layers=1, d_model=64, n_heads=4, d_ff=256)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def score() -> int:
        model.eval()
        with torch.inference_mode():
            for some in windows.split(BATCH):
                model(some.contiguous())
        return len(windows)

    def train() -> int:
        model.train()
        for some, wanted in zip(windows.split(BATCH), targets.split(BATCH), strict=True):
            optimizer.zero_grad()
            cross_entropy(model(some.contiguous()), wanted).backward()
            optimizer.step()
        return len(windows)

    return train if request.get("train") else score


if __name__ == "__main__":
    serve({"lightgbm": lightgbm_task, "minirocket": minirocket_task, "tst": tst_task})
