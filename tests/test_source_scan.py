"""No source can run code from a file, start a program or use the network; what looks like it is listed, with why."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import netanomaly

ROOT = Path(netanomaly.__file__).parent
SOURCES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}

CALLS = {
    *("eval", "exec", "compile", "__import__", "breakpoint"),
    *("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load"),
    *(
        "pandas.read_pickle",
        "pd.read_pickle",
        "np.load",
        "numpy.load",
        "joblib.load",
        "torch.jit.load",
        "torch.hub.load",
    ),
    *("os.system", "os.popen", "os.startfile", "import_module", "importlib.import_module"),
}
MODULES = {
    *("pickle", "cPickle", "dill", "joblib", "cloudpickle", "marshal", "shelve", "shutil", "ctypes", "code", "runpy"),
    *("subprocess", "multiprocessing", "pty", "socket", "ssl", "ftplib", "smtplib", "telnetlib", "xmlrpc"),
    *("requests", "urllib", "urllib3", "http", "httpx", "aiohttp", "huggingface_hub"),
}
ALLOWED = {
    ("__init__.py", "import_module"): "names of the package's own modules, from a table in the same file",
    ("cluster/output.py", "shutil"): "removes directories that it has made itself",
    ("commands/watching.py", "socket"): "the name of this machine, for the address of its metrics",
    ("config_tracking.py", "urllib"): "the parts of an address",
    ("prometheus/http.py", "http"): "its class of errors, nothing else",
    ("prometheus/http.py", "urllib"): "asks the servers that options of the command name, and no other",
    ("allocator.py", "ctypes"): "one setting of the C library's memory, by a fixed name",
    ("model/language_families.py", "huggingface_hub"): "its class of errors, nothing else",
    ("model/language_model.py", "from_pretrained"): "from weights in memory: the place to look in is None",
}
"""File and what it does, and why that may be."""


def _names(tree: ast.AST) -> Iterator[str]:
    """What a file calls, imports or asks for that may run code, start a program or use the network."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call):
            yield _called(node)


def _called(node: ast.Call) -> str:
    """The dotted name of what is called; calls that are fine with one argument only in a form of their own."""
    name, keywords = ast.unparse(node.func), {one.arg: one.value for one in node.keywords}
    if name == "torch.load":
        safe = keywords.get("weights_only")
        return "torch.load safely" if isinstance(safe, ast.Constant) and safe.value is True else "torch.load"
    if name.endswith(".from_pretrained"):
        return "from_pretrained"
    if isinstance(shell := keywords.get("shell"), ast.Constant) and shell.value:
        return "shell"
    if "trust_remote_code" in keywords:
        return "trust_remote_code"
    return name


def _found(source: str) -> set[str]:
    forbidden = CALLS | MODULES | {"torch.load", "from_pretrained", "shell", "trust_remote_code"}
    return set(_names(ast.parse(source))) & forbidden


@pytest.mark.parametrize("name", SOURCES)
def test_no_source_can_run_what_it_reads(name: str) -> None:
    assert {found for found in _found(SOURCES[name]) if (name, found) not in ALLOWED} == set()


def test_what_is_allowed_is_still_there() -> None:
    assert {(name, found) for name, source in SOURCES.items() for found in _found(source)} == set(ALLOWED)


def test_from_pretrained_is_told_to_look_nowhere() -> None:
    calls = [
        node
        for node in ast.walk(ast.parse(SOURCES["model/language_model.py"]))
        if isinstance(node, ast.Call) and _called(node) == "from_pretrained"
    ]
    assert [ast.unparse(node.args[0]) for node in calls] == ["None"]


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from urllib.request import urlopen",
        "eval('1')",
        "import torch\ntorch.load('x')",
        "import torch\ntorch.load('x', weights_only=False)",
        "import torch\ntorch.load('x', weights_only=flag)",
        "import yaml\nyaml.load(text, yaml.Loader)",
        "def f():\n    import subprocess\n",
        "run(command, shell=True)",
        "Model.from_pretrained(name)",
    ],
)
def test_the_scan_sees_what_it_is_there_for(source: str) -> None:
    assert _found(source)


def test_the_scan_lets_safe_loading_pass() -> None:
    assert not _found("import torch\ntorch.load(path, weights_only=True)\nimport yaml\nyaml.safe_load(text)")


def test_every_exception_to_the_linter_s_security_rules_names_its_rule() -> None:
    for name, source in SOURCES.items():
        for line in source.splitlines():
            assert "# noqa" not in line or "# noqa: " in line, f"{name}: {line}"
            assert "ruff: noqa" not in line, f"{name}: {line}"
    pyproject = (ROOT.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert '"S"' in pyproject.split("select = [")[1].split("]")[0]
    assert '"S' not in pyproject.split("ignore = [")[1].split("]")[0]


PRINTS = {
    "ending.py": "what went wrong, made printable by it",
    "terminal.py": "`tell`, which makes text printable",
}
"""Where `print` is called, and why that may be: text from files can drive a terminal."""


def test_whatever_is_printed_is_made_printable() -> None:
    calls = {
        name
        for name, source in SOURCES.items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
    }
    assert calls == set(PRINTS)


def test_only_the_bundle_s_own_module_reads_the_bundle_s_files() -> None:
    """Everyone else goes through `load_bundle` and `read_manifest`, which check."""
    names = ("CONTENT", "MANIFEST", "WEIGHTS")
    users = set()
    for name, source in SOURCES.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and ast.unparse(node.right) in names:
                users.add(name)
    assert users == {"bundle.py", "model/language_model.py", "run_directory.py"} | {"bundle_files.py"}
    readers = set()
    for name, source in SOURCES.items():
        tree = ast.parse(source)
        known = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if known & set(names) and used & {"read_bytes", "open", "load_file"}:
            readers.add(name)
    assert readers == set()
    quoted = {name for name, source in SOURCES.items() if '"bundle.json"' in source or '"manifest.json"' in source}
    assert quoted == {"bundle_files.py"}
