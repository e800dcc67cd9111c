"""How a text file is written: encoding, separator, decimal mark."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from netanomaly.data.text_files import open_text, short_lines
from netanomaly.errors import DataError
from netanomaly.inspect.guesses import Dialect

HEAD_BYTES, HEAD_LINES = 2**22, 200
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_COMMA_NUMBER = re.compile(r"[-+]?[0-9]+,[0-9]+")


def head_of(path: Path) -> bytes:
    """The first bytes of a plain or gzip file. Raises DataError if it cannot be read."""
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as stream:
            return bytes(stream.read(HEAD_BYTES))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot read the file: {error}") from error


def sniff(path: Path) -> Dialect:
    """Encoding and separator of a text file; the decimal mark needs its columns (`decimal_of`).

    Raises:
        DataError: the file cannot be read, or is empty.
    """
    head = head_of(path)
    encoding, notes = _encoding(head)
    lines = []
    with open_text(path, encoding) as stream:
        for line in short_lines(stream, path):
            if line.strip():
                lines.append(line)
            if len(lines) == HEAD_LINES:
                break
    if not lines:
        raise DataError(f"{path}: the file is empty; expected a header line and rows")
    separator = _separator(lines)
    if separator != ",":
        notes.append(f"{_SEPARATORS[separator]}s split the header and the lines alike")
    return Dialect(separator=separator, encoding=encoding, notes=tuple(notes))


def _encoding(head: bytes) -> tuple[str, list[str]]:
    """The encoding and how it shows."""
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if head.startswith(mark):
            return name, ["UTF-16: the file starts with its byte-order mark"]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD_BYTES)
    except UnicodeDecodeError as error:
        odd = head[error.start]
        for name in ("cp1252", "latin-1"):  # latin-1 reads everything
            try:
                text = head.decode(name)
            except UnicodeDecodeError:
                continue
            near = text[max(0, error.start - 12) : error.start + 12].splitlines()
            shown = next((part for part in near if bytes([odd]).decode(name) in part), "")
            return name, [f"{name}: byte {odd:#04x} is not UTF-8; so it reads '{shown.strip()}', by the look of it"]
    return "utf-8", []


def _separator(lines: Sequence[str]) -> str:
    """The character at which header and most lines fall into as many fields, more than one."""
    best, found = (False, 0.0, 0), ","
    for separator in _SEPARATORS:
        counts = [len(fields) for fields in _fields(lines, separator)]
        usual, lines_alike = Counter(counts).most_common(1)[0]
        if counts[0] < 2 or usual < 2:
            continue
        score = (usual == counts[0], lines_alike / len(counts), usual)
        if score > best:
            best, found = score, separator
    return found


def _fields(lines: Sequence[str], separator: str) -> list[list[str]]:
    try:
        return [fields for fields in csv.reader(lines, delimiter=separator) if fields]
    except csv.Error:
        return [[line] for line in lines]


def decimal_of(cells: pd.DataFrame, separator: str) -> tuple[str, list[str]]:
    """The decimal mark of columns of text, and how it shows."""
    if separator == ",":
        return ".", []
    for column in cells.columns:
        texts = cells[column][cells[column] != ""].head(1000)
        if len(texts) and texts.str.fullmatch(_COMMA_NUMBER).mean() > 0.5:
            return ",", [f"'{texts.iloc[0]}' in '{column}'"]
    return ".", []
