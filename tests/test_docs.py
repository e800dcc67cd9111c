"""docs/attention.md: its Python runs and prints what it shows, and its tables and YAML are those of the config."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
import yaml

from netanomaly.config_model import AttentionConfig, LanguageModelConfig, ModelConfig
from netanomaly.model import choices

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "attention.md"
TEXT = PAGE.read_text(encoding="utf-8")
BEGIN, END = "<!-- comparison: begin -->", "<!-- comparison: end -->"
CHOICES = {
    "score": choices.Score,
    "normalise": choices.Normalise,
    "mask": choices.Mask,
    "memory": choices.Memory,
    "feed_forward": choices.FeedForward,
    "execution": choices.Execution,
    "read_out": choices.ReadOut,
}
POSITIONS = {"sinusoidal", *get_args(choices.Table), "rotary", "relative_bias", "relative_key", "none"}


class Block(NamedTuple):
    """A fenced block: its language, the line of its first line, what it holds, what stands between it and the next."""

    language: str
    line: int
    content: str
    behind: str


def blocks(text: str) -> list[Block]:
    found = list(re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    ends = [*(match.start() for match in found[1:]), len(text)]
    return [
        Block(match[1], text[: match.start()].count("\n") + 2, match[2], text[match.end() : end])
        for match, end in zip(found, ends, strict=True)
    ]


def check(text: str) -> int:
    """Run the Python blocks in order in one namespace and hold what they print to the text blocks; how many ran."""
    namespace: dict[str, Any] = {"__name__": "page"}
    found = blocks(text)
    programs = [block for block in found if block.language == "python"]
    outputs = [block for block in found if block.language == "text"]
    for program in programs:
        shown = ""
        if outputs and outputs[0] is after(program, found):
            shown = outputs.pop(0).content
        assert printed_by(program, namespace) == shown, f"the block at line {program.line} prints something else"
    assert not outputs, f"line {outputs[0].line}: no block prints this"
    return len(programs)


def after(block: Block, found: list[Block]) -> Block | None:
    """The block right behind this one, if there is no text between them."""
    following = found[found.index(block) + 1 :]
    return following[0] if following and not block.behind.strip() else None


def printed_by(program: Block, namespace: dict[str, Any]) -> str:
    """Compiled at its place in the page, so that a traceback names the page's lines."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (program.line - 1) + program.content, str(PAGE), "exec"), namespace)
    return printed.getvalue()


def rows() -> dict[str, tuple[str, str]]:
    """Default and choices by key, from the table of all keys."""
    found = re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \|$", TEXT, re.MULTILINE)
    assert len({key for key, *_ in found}) == len(found)
    return {key: (default, choice) for key, default, choice in found}


def test_the_python_runs_and_prints_what_the_page_shows() -> None:
    assert check(TEXT) == TEXT.count("```python\n") > 8


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1 + 1)\n```\n```text\n3\n```\n",
        "```python\nprint(2)\n```\n",
        "```python\nprint(2)\n```\nso\n```text\n2\n```\n",
        "```python\nx = 2\n```\n```text\n2\n```\n",
        "```text\n2\n```\n",
        "```python\nassert 1 + 1 == 3\n```\n",
    ],
)
def test_the_check_finds_what_is_wrong(text: str) -> None:
    with pytest.raises(AssertionError):
        check(text)


def test_blocks_share_their_names_and_tracebacks_have_the_lines_of_the_page() -> None:
    assert check("```python\nx = 2\n```\nso\n\n```python\nprint(x)\n```\n\n```text\n2\n```\n") == 2
    with pytest.raises(ZeroDivisionError) as caught:
        check("# title\n\n```python\n1 / 0\n```\n")
    assert caught.traceback[-1].lineno == 3  # counted from 0


def test_no_fence_is_left_open_or_of_another_kind() -> None:
    assert {block.language for block in blocks(TEXT)} == {"python", "text", "yaml"}
    assert TEXT.count("```") == 2 * len(blocks(TEXT))


def test_the_table_has_every_key_with_its_default() -> None:
    fields = {**AttentionConfig.model_fields, "read_out": ModelConfig.model_fields["read_out"]}
    del fields["kind"]
    assert set(rows()) == set(fields)
    for key, field in fields.items():
        default = field.default.kind if key == "positions" else field.default
        assert yaml.safe_load(rows()[key][0]) == default, key


@pytest.mark.parametrize("key", CHOICES)
def test_the_table_names_every_choice(key: str) -> None:
    assert set(get_args(CHOICES[key])) <= named(rows()[key][1])


def test_the_table_names_every_kind_of_positions_with_its_keys() -> None:
    models = get_args(AttentionConfig.model_fields["positions"].annotation)
    keys = {key for model in models for key in model.model_fields} - {"kind"}
    assert named(rows()["positions"][1]) == POSITIONS | keys | {"score: dot"}
    assert {AttentionConfig.model_validate({"positions": kind}).positions.kind for kind in POSITIONS} == POSITIONS


def test_the_yaml_is_accepted() -> None:
    sections = [yaml.safe_load(block.content)["model"] for block in blocks(TEXT) if block.language == "yaml"]
    kinds = [ModelConfig.model_validate(section).sequence_model.kind for section in sections]
    assert kinds == ["attention", "language_model"]


def test_the_language_model_has_all_its_keys() -> None:
    _, _, section = TEXT.partition("**A language model instead.**")
    words = named(section.partition("\n## ")[0])
    assert set(LanguageModelConfig.model_fields) - {"kind"} <= words
    assert set(get_args(LanguageModelConfig.model_fields["train"].annotation)) <= words


def test_every_figure_is_shown_and_small() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(attention/(\w+\.svg)\)", TEXT)
    assert sorted(shown) == sorted(path.name for path in (PAGE.parent / "attention").iterdir())
    assert all((PAGE.parent / "attention" / name).stat().st_size < 100_000 for name in shown)


def test_the_comparison_has_its_place() -> None:
    assert TEXT.count(BEGIN) == TEXT.count(END) == 1
    assert TEXT.index("\n## What it does to the result\n") < TEXT.index(BEGIN) < TEXT.index(END)
    rows = TEXT[TEXT.index(BEGIN) : TEXT.index(END)].strip().splitlines()[3:]  # after marker, header and rule
    names = [row.split("|")[1].strip() for row in rows]
    assert len(names) == len(set(names)) >= 15 and names[0] == "default"
    assert sum(name.startswith("language model") for name in names) == 3
    assert all(len(re.findall(r"0\.\d{3}", row.split("|")[2])) == 4 for row in rows)  # a mean and three seeds


def named(text: str) -> set[str]:
    """What stands in code marks, fenced blocks aside."""
    return set(re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)))


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "data" / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=str
)
def test_links_lead_somewhere(page: Path) -> None:
    """To files that there are, and to headings that they have."""
    for target in re.findall(r"\]\(([^)#\s]*(?:#[^)\s]*)?)\)", page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        file, _, heading = target.partition("#")
        found = (page.parent / file) if file else page
        assert found.exists(), f"{page.name}: {target}"
        if heading:
            titles = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
            assert heading in slugs, f"{page.name}: {target}"
