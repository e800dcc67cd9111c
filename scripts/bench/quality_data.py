"""The data sets of scripts/bench_quality.py: a config each, or several that are folds, and what peers get of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scripts.bench.quality_problem import BASELINES, NO_TARGET, Problem, ProblemSegment
from scripts.bench.quality_variants import VARIANTS, make_variant

from netanomaly.config import ChannelsConfig, Config, load_config
from netanomaly.data.channels import LEVELS, Channels
from netanomaly.data.splits import PART_NAMES, TEST, TRAIN
from netanomaly.prepare import Prepared

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "configs" / "benchmark"
TESTBED = "testbed_a"
LEAVE_ONE_OUT = "testbed_loo"
PUBLIC = ("kddi_ipcore", "cisco_bgpclear", "snmp_mib", "optical_failure")
DATASETS = (TESTBED, LEAVE_ONE_OUT, *PUBLIC, *VARIANTS)
NORMAL = "normal"


def folds(name: str, data_root: Path | None, work: Path) -> list[Config]:
    """The configs of a data set, one for each training; all but `testbed_loo` have one.

    Args:
        data_root: where the public data sets are.
        work: where variants are written.

    Raises:
        ValueError: the data set needs `data_root`, or there is no such data set.
    """
    if name in PUBLIC:
        if data_root is None:
            raise ValueError(f"{name} is not bundled: --data-root DIR says where {name}/data.csv.gz is")
        return [load_config(CONFIGS / f"{name}.yaml", [f"data.root={json.dumps(str(data_root))}"])]
    if name not in DATASETS:
        raise ValueError(f"there is no data set '{name}'; there are {', '.join(DATASETS)}")
    testbed = load_config(CONFIGS / f"{TESTBED}.yaml", [f"data.root={json.dumps(str(ROOT))}"])
    if name in VARIANTS:
        directory = make_variant(name, ROOT / "data" / "testbed", work / "variants" / name)
        changes = [f"data.root={json.dumps(str(directory))}", "data.files=data.csv.gz", "data.split.path=split.csv"]
        return [load_config(testbed, changes)]
    return leave_one_out(testbed) if name == LEAVE_ONE_OUT else [testbed]


def leave_one_out(testbed: Config) -> list[Config]:
    """Every link in turn judges, the next one chooses, the others train."""
    links = [f"a{number:02d}" for number in range(1, 9)]
    return [
        load_config(
            testbed,
            [
                "data.split="
                + json.dumps(
                    {
                        "by": "series",
                        "train": [link for link in links if link not in (links[test], links[(test + 1) % 8])],
                        "validation": [links[(test + 1) % 8]],
                        "test": [links[test]],
                    }
                )
            ],
        )
        for test in range(len(links))
    ]


def class_names(prepared: Prepared) -> tuple[str, ...]:
    """The classes of training, normal first, then those that only validation has."""
    known = [set(prepared.report[part]["classes"]) for part in PART_NAMES[:2]]
    train = sorted(known[0], key=lambda name: (name != NORMAL, name))
    return (*train, *sorted(known[1] - known[0]))


def make_problem(prepared: Prepared, baselines: Sequence[int] = BASELINES) -> Problem:
    """What the peers get: every row, the labels of training and validation, which test rows to score.

    Relative channels are of the package's default kinds, without levels, with baselines from the peers' list.
    """
    kinds = [kind for kind in ChannelsConfig().kinds if kind not in LEVELS]
    segments, parts = prepared.grid.segments, prepared.split.parts
    training = [(part == TRAIN) & segment.valid for segment, part in zip(segments, parts, strict=True)]
    values = [segment.values for segment in segments]
    fitted = {baseline: Channels.fit(values, training, kinds, (baseline,)) for baseline in baselines}
    names = class_names(prepared)
    return Problem(
        names,
        tuple(
            ProblemSegment(
                segment.values,
                {baseline: channels(segment.values) for baseline, channels in fitted.items()},
                _targets(segment.labels, segment.valid & (part >= TRAIN) & (part < TEST), names),
                part,
                wanted,
            )
            for segment, part, wanted in zip(segments, parts, prepared.labelled(TEST), strict=True)
        ),
    )


def _targets(labels: NDArray[np.object_], known: NDArray[np.bool_], names: Sequence[str]) -> NDArray[np.int64]:
    number: Callable[[str], int] = {name: i for i, name in enumerate(names)}.get  # type: ignore[assignment]
    found = [number(label) for label in labels]
    return np.array([NO_TARGET if i is None or not k else i for i, k in zip(found, known, strict=True)], dtype=np.int64)
