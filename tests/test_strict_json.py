"""JSON with one meaning, or none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netanomaly.strict_json import MOST_CONTAINERS, MOST_DEPTH, parse_json

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None)
@given(PLAIN, st.booleans())
def test_what_was_written_is_read(value: object, ascii_only: bool) -> None:
    assert parse_json(json.dumps({"value": value}, ensure_ascii=ascii_only).encode()) == {"value": value}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 1}}', "the key 'c' is there twice"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": [-Infinity]}', "-Infinity is no number"),
        ('{"a": 1e999}', "the number 1e999 is too large"),
        ('{"a": 9223372036854775808}', "too large"),
        ('{"a": -9223372036854775809}', "too large"),
        ('{"a": ' + "1" * 100_000 + "}", "too large"),
        ('{"a": "\\ud800"}', "surrogates not allowed"),
        ('{"\\udfff": 1}', "surrogates not allowed"),
        ("[1]", "expected a JSON object"),
        ("", "Expecting value"),
        ('{"a": 1} more', "Extra data"),
        ('{"a": ' + "[" * 200 + "]" * 200 + "}", "nested more than"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested more than"),
        ('{"a":' * 200 + "1" + "}" * 200, "nested more than"),
        ('{"a": [' + "[]," * MOST_CONTAINERS + "1]}", "lists and objects"),
    ],
    ids=lambda value: value[:30],
)
def test_anything_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(text.encode("utf-8"))


def test_what_is_not_utf_8_is_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        parse_json(b'{"a": "\xff"}')


def test_nesting_that_people_write_is_read() -> None:
    deep = '{"a": ' + "[" * (MOST_DEPTH - 2) + "]" * (MOST_DEPTH - 2) + "}"
    assert parse_json(deep.encode())


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert parse_json(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}
