"""Who may know whom, and what importing costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import netanomaly

ROOT = Path(netanomaly.__file__).parent
UPSTAIRS = {"bundle", "predictor", "run", "prepare", "build", "config", "cli"}
PUBLIC = [
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


def _name(path: Path) -> str:
    """`data/schema.py` is the module `data.schema`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


MODULES = {_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def _imports(tree: ast.AST) -> Iterator[str]:
    """What of the package a module imports, anywhere in it: `netanomaly.data.grid` is `data.grid`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            first, _, rest = name.partition(".")
            if first == "netanomaly":
                yield rest


def _users(target: str) -> set[str]:
    """Modules that import `target` or something of it."""
    return {
        name
        for name, tree in MODULES.items()
        if any(found == target or found.startswith(f"{target}.") for found in _imports(tree))
    }


@pytest.mark.parametrize(
    "module",
    ["data.schema", "model.positions", "training.losses", "training.schedule", "evaluation.metrics", "errors"],
)
def test_the_lowest_modules_know_nothing_of_the_package(module: str) -> None:
    assert not list(_imports(MODULES[module]))


def test_the_model_knows_only_itself() -> None:
    for name, tree in MODULES.items():
        if name.startswith("model."):
            assert all(found.startswith("model.") for found in _imports(tree)), name


@pytest.mark.parametrize(
    ("room", "unknown"),
    [
        (
            "data",
            ("model", "training", "evaluation", "bundle", "predictor", "run", "prepare", "build", "config", "cli"),
        ),
        ("training", ("evaluation", "bundle", "predictor", "run", "prepare", "build", "config", "cli")),
        (
            "evaluation",
            ("model", "training", "bundle", "predictor", "run", "prepare", "build", "config", "cli", "data"),
        ),
        (
            "report",
            ("model", "training", "bundle", "predictor", "run", "prepare", "build", "config", "cli", "scoring"),
        ),
    ],
)
def test_a_room_does_not_know_those_above_it(room: str, unknown: set[str]) -> None:
    for name, tree in MODULES.items():
        if name.startswith(f"{room}."):
            assert not [found for found in _imports(tree) if found.split(".")[0] in unknown], name


def test_exports_know_only_errors_and_each_other() -> None:
    for name, tree in MODULES.items():
        if name.startswith("exports."):
            assert all(found.startswith(("exports.", "errors.")) for found in _imports(tree)), name


def test_only_the_program_looks_into_files_and_exports() -> None:
    assert {name for name in _users("inspect") if not name.startswith("inspect.")} == {"commands.inspect"}
    assert {name for name in _users("exports") if not name.startswith("exports.")} == {"inspect.command"}


def test_only_the_program_exports() -> None:
    assert {name for name in _users("deploying") if not name.startswith("deploying.")} == {"commands.export"}
    for name in ("channels", "novelty", "window_model", "formats"):
        assert not [found for found in _imports(MODULES[f"deploying.{name}"]) if found.split(".")[0] in UPSTAIRS], name


def test_nothing_but_the_two_scripts_knows_the_cluster() -> None:
    assert not {name for name in _users("cluster") if not name.startswith("cluster.")}


@pytest.mark.parametrize("engine", ["pyspark", "ray"])
def test_an_engine_is_known_in_one_place(engine: str) -> None:
    users = set()
    for name, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            else:
                found = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            users |= {name for module in found if module.split(".")[0] == engine}
    assert users == {f"cluster.on_{engine.removeprefix('py')}"}


def test_the_loops_know_nothing_of_what_runs_them() -> None:
    found = " ".join(_imports(MODULES["training.engine"]))
    assert not [name for name in ("trainer", "bundle", "predictor", "evaluation", "run") if name in found]


def test_reasons_know_neither_the_predictor_nor_the_config() -> None:
    for name in ("reason", "reason_metrics", "reason_rows", "reasons"):
        assert not [found for found in _imports(MODULES[name]) if found.split(".")[0] in UPSTAIRS], name


def test_only_the_program_knows_the_command_line() -> None:
    assert _users("cli") == {"__main__"}


def test_only_what_builds_reads_config_objects() -> None:
    takers = set()
    for name, tree in MODULES.items():
        for node in ast.walk(tree):
            if name not in ("config", "config_model", "config_tracking") and isinstance(node, ast.ClassDef):
                annotations = [n.annotation for n in ast.walk(node) if isinstance(n, (ast.AnnAssign, ast.arg))]
                if any("Config" in ast.unparse(found) for found in annotations if found is not None):
                    takers.add(node.name)
    assert takers <= {"Bundle", "Learnt", "Predictor", "Prepared"}


def test_no_module_is_two_rooms() -> None:
    lengths = {_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in ROOT.rglob("*.py")}
    assert max(lengths.values()) <= 310, max(lengths, key=lambda name: lengths[name])


def test_public_names() -> None:
    assert netanomaly.__all__ == PUBLIC == sorted(PUBLIC) == sorted(netanomaly._HOMES)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_what_its_home_defines(name: str) -> None:
    tree = MODULES[netanomaly._HOMES[name]]
    assert name in {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def test_no_public_name_is_that_of_a_module() -> None:
    assert not set(PUBLIC) & set(MODULES)


def test_public_names_are_the_same_at_first_and_second_use() -> None:
    _run("import netanomaly as n; assert all(getattr(n, name) is getattr(n, name) for name in n.__all__)")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'netanomaly' has no attribute 'trian'"):
        netanomaly.trian  # noqa: B018


def _run(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


HEAVY = {"torch", "pandas", "sklearn", "numpy", "scipy", "safetensors", "pydantic"}


def test_importing_the_package_imports_nothing_heavy() -> None:
    loaded = _run("import sys, netanomaly; print(*sys.modules)").split()
    assert not HEAVY & set(loaded)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["train", "--help"], ["inspect", "--help"]], ids=" ".join
)
def test_asking_the_program_for_help_imports_nothing_heavy(arguments: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "netanomaly", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in result.stderr.splitlines()}
    assert "netanomaly" in loaded
    assert not HEAVY & loaded


def test_looking_into_a_file_does_not_load_what_trains() -> None:
    loaded = _run("import sys, netanomaly.inspect.command; print(*sys.modules)").split()
    assert not {"torch", "sklearn"} & set(loaded)


def test_importing_the_model_does_not_import_the_data() -> None:
    loaded = _run("import sys, netanomaly.model.classifier; print(*sys.modules)").split()
    assert not {name for name in loaded if name.startswith(("netanomaly.data", "pandas", "sklearn"))}


def test_prometheus_knows_neither_who_watches_nor_the_config() -> None:
    for name, tree in MODULES.items():
        if name.startswith("prometheus."):
            found = {found.split(".")[0] for found in _imports(tree)}
            assert found <= {"alarms", "data", "errors", "incident_files", "prometheus", "strict_json"}, name
    users = {name for name in _users("prometheus") if not name.startswith("prometheus.")}
    assert users == {"commands.from_prometheus", "commands.watching", "watch.metrics", "watch.polled"}


def test_only_what_builds_knows_the_trackers_of_others() -> None:
    for name in ("tensorboard", "mlflow"):
        assert _users(f"tracking.{name}") == {"build_tracking"}
    for name, tree in MODULES.items():
        if name.startswith("tracking."):
            assert not [found for found in _imports(tree) if found.split(".")[0] in UPSTAIRS], name


def test_only_the_program_watches() -> None:
    assert {name for name in _users("watch") if not name.startswith("watch.")} == {"commands.watching"}
