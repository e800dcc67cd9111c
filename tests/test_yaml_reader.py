from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netanomaly.errors import ConfigError
from netanomaly.yaml_reader import apply_overrides, parse_yaml, read_yaml

MARKS = "ab:-[]{}?&*!|>'\"%@,#~<= \n01"
PROPERTY = settings(max_examples=100, deadline=None)


def refuse(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, "c.yaml")
    assert str(caught.value).startswith("c.yaml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Scalars


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("2e-3", 2e-3),
        ("1E3", 1000.0),
        ("-1.5e+3", -1500.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("010", 10),
        ("08", 8),
        ("true", True),
        ("False", False),
        ("TRUE", True),
        ("null", None),
        ("~", None),
        ("", None),
    ],
)
def test_a_plain_scalar_is_a_value(text: str, value: Any) -> None:
    found = parse_yaml(f"key: {text}", "c.yaml")["key"]
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "text",
    [
        "no", "yes", "on", "off", "y", "n", "No", "ON", "nan", "inf", ".nan", ".inf", "None", "NA",
        "12:30", "12:30:45", "1:2", "2026-11-29", "2026-11-29T16:59:51Z", "0x10", "0o10", "0b1", "1_000",
        "500ms", "32s", "1e", "e3", "-", "1.2.3", "10.0.0.1", "=", "%", "tRue",
    ],
)  # fmt: skip
def test_a_plain_word_stays_a_word(text: str) -> None:
    quoted = f'"{text}"' if text == "%" or text == "-" else text
    assert parse_yaml(f"key: {quoted}", "c.yaml") == {"key": text}


@pytest.mark.parametrize("text", ["1e-3", "010", "true", "null", "~", "5", ""])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_what_is_quoted_is_text(text: str, quote: str) -> None:
    assert parse_yaml(f"key: {quote}{text}{quote}", "c.yaml") == {"key": text}


@PROPERTY
@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30))
def test_every_number_that_python_writes_is_read_back(number: float) -> None:
    found = parse_yaml(f"[{number!r}]", "c.yaml")
    assert found == [number]
    assert type(found[0]) is type(number)


def test_a_word_may_be_a_key() -> None:
    assert parse_yaml("no: 1\non: 2\n1e-3: 3", "c.yaml") == {"no": 1, "on": 2, 1e-3: 3}


def test_an_alias_repeats_a_section() -> None:
    assert parse_yaml("a: &x {b: 1}\nc: *x", "c.yaml") == {"a": {"b": 1}, "c": {"b": 1}}


@pytest.mark.parametrize("merge", ["<<: *x, c: 2", "c: 2, <<: *x"])
def test_a_merge_takes_over_a_section(merge: str) -> None:
    assert parse_yaml(f"a: &x {{b: 1, c: 1}}\nd: {{{merge}}}", "c.yaml")["d"] == {"b": 1, "c": 2}


# Errors


@pytest.mark.parametrize(
    ("text", "place", "key"),
    [
        ("a: 1\nb: 2\na: 3", "line 3, column 1", "a"),
        ("x:\n  a: 1\n  a: 1", "line 3, column 3", "a"),
        ("x: {a: 1, a: 2}", "line 1, column 11", "a"),
        ("- a: 1\n  'a': 2", "line 2, column 3", "a"),
        ("1: a\n01: b", "line 2, column 1", "1"),
    ],
)
def test_a_key_given_twice_is_an_error_with_its_place(text: str, place: str, key: str) -> None:
    assert refuse(text) == f"c.yaml: {place}: the key '{key}' is given twice"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: 1\nb: [", "line 2, column 5"),
        ("a: b: c", "line 1, column 5"),
        ("a: 1\n\tb: 2", "line 2, column 1"),
        ("a: *nothing", "line 1, column 4"),
        ("--- 1\n--- 2", "line 2, column 1"),
        ("a: !!python/object/apply:os.system [ls]", "line 1, column 4"),
        ("a: !!python/name:os.system", "line 1, column 4"),
        ("a: !mine 3", "line 1, column 4"),
        ("a: @b", "line 1, column 4"),
    ],
)
def test_a_broken_text_is_an_error_with_its_place(text: str, place: str) -> None:
    assert refuse(text).startswith(f"c.yaml: {place}: ")


@pytest.mark.parametrize(
    "text",
    [
        "? [1, 2]\n: 3",
        "a: !!int x",
        "a: !!float x",
        "a: " + "1" * 5000,
        "[" * 2000,
        "a: !!bool maybe",
        "a: \x07",
        "a: \x00",
    ],
    ids=["list as key", "no int", "no float", "long int", "deep", "no bool", "control character", "zero"],
)
def test_an_odd_text_is_an_error_too(text: str) -> None:
    assert refuse(text).startswith("c.yaml: not valid YAML")


@PROPERTY
@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)) | st.text(MARKS))
def test_any_text_is_a_value_or_a_config_error(text: str) -> None:
    try:
        parse_yaml(text, "c.yaml")
    except ConfigError as error:
        assert str(error).startswith("c.yaml")


# Files


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("\ufeffname: caf\xe9  # a comment\r\n", encoding="utf-8")
    assert read_yaml(path) == {"name": "caf\xe9"}


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "cannot read the config"), (b"a: \xff", "not UTF-8 text (byte 3)"), (b"a: [", "line 1, column 5")],
    ids=["missing", "latin-1", "broken"],
)
def test_a_bad_file_is_a_config_error_with_its_name(tmp_path: Path, content: bytes | None, told: str) -> None:
    path = tmp_path / "c.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert told in str(caught.value)


def test_a_directory_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the config"):
        read_yaml(tmp_path)


# Overrides

TREE = {"a": {"b": 1, "c": {"d": 2}}, "list": [1], "word": "x", "nothing": None}


@pytest.mark.parametrize(
    ("override", "section", "value"),
    [
        ("a.b=2", ("a", "b"), 2),
        ("a.b=1e-3", ("a", "b"), 1e-3),
        ("a.b=no", ("a", "b"), "no"),
        ("a.b='1'", ("a", "b"), "1"),
        ("a.b=", ("a", "b"), None),
        ("a.b=x=y", ("a", "b"), "x=y"),
        ("a.b=[1, x]", ("a", "b"), [1, "x"]),
        ("a.b={c: 1}", ("a", "b"), {"c": 1}),
        ("a.c.d=3", ("a", "c", "d"), 3),
        ("a=3", ("a",), 3),
        ("new.section.key=3", ("new", "section", "key"), 3),
        ("nothing.key=3", ("nothing", "key"), 3),
    ],
)
def test_an_override_sets_one_value(override: str, section: tuple[str, ...], value: Any) -> None:
    found: Any = apply_overrides(TREE, [override])
    for key in section:
        found = found[key]
    assert found == value


def test_an_override_leaves_the_rest_and_the_tree() -> None:
    found = apply_overrides(TREE, ["a.c.d=3"])
    assert found == TREE | {"a": {"b": 1, "c": {"d": 3}}}
    assert TREE["a"] == {"b": 1, "c": {"d": 2}}


def test_the_last_of_several_overrides_counts() -> None:
    assert apply_overrides(TREE, ["word=a", "word=b"])["word"] == "b"


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("a.b", "write it as section.key=value"),
        ("=1", "write it as section.key=value"),
        ("a..b=1", "write it as section.key=value"),
        (".a=1", "write it as section.key=value"),
        ("a.=1", "write it as section.key=value"),
        ("list.0=3", "'list' is not a section"),
        ("word.x=3", "'word' is not a section"),
        ("a.b.x=3", "'b' is not a section"),
        ("a.b=[", "line 1, column 2"),
        ("a.b=*x", "undefined alias"),
    ],
)
def test_a_bad_override_is_a_config_error_that_quotes_it(override: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        apply_overrides(TREE, [override])
    assert str(caught.value).startswith(f"--set {override}: ")
    assert told in str(caught.value)


def test_aliases_that_swell_are_refused() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 12))
    with pytest.raises(ConfigError, match=r"^a\.yaml: aliases \(\*\) make more than 100,000 values"):
        parse_yaml(f"l0: &l0 [x]\n{levels}", "a.yaml")


def test_what_is_no_config_by_its_size_is_told(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"# \n" * 2**21)
    with pytest.raises(ConfigError, match=r"a config has 4,194,304 at most"):
        read_yaml(path)
