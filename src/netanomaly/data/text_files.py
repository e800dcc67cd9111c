"""Opening text files, plain or gzip, with every way that can fail told as a DataError."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from netanomaly.errors import ConfigError, DataError
from netanomaly.files import other_kind

LONGEST_LINE = 2**24
"""Characters of a line, at most: longer ones are no rows, and a few bytes of gzip may hold gigabytes."""

_MAGIC = {b"\x1f\x8b": "gzip data", b"PK\x03\x04": "a zip archive (or a spreadsheet)", b"PAR1": "Parquet data"}


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """The text of a plain or gzip file; whatever can go wrong on the way becomes a DataError."""
    try:
        "".encode(encoding)  # of the codecs Python knows, some are not for text
    except LookupError as error:
        raise ConfigError(f"data.encoding: unknown encoding '{encoding}'") from error
    try:
        if (kind := other_kind(path)) not in (None, "a directory"):  # the system says what is wrong with that
            raise DataError(f"{path}: is {kind}, and files are read more than once; save it to a regular file first")
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding=codec(encoding), newline="") as stream:
            yield stream
    except UnicodeDecodeError as error:
        for magic, kind in _MAGIC.items():
            if error.object.startswith(magic):
                raise DataError(f"{path}: holds {kind}, not text; unpack it, or name it by its format") from error
        raise DataError(
            f"{path}: not {encoding} text (byte {error.object[error.start]:#04x}); set data.encoding"
        ) from error
    except UnicodeError as error:
        raise DataError(f"{path}: not {encoding} text ({error}); set data.encoding") from error
    except csv.Error as error:
        raise DataError(f"{path}: not a readable CSV: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip file is damaged or cut short: {error}") from error
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file (seen from {Path.cwd()})") from error
    except OSError as error:
        raise DataError(f"{path}: cannot read the file: {error.strerror or error}") from error


def short_lines(stream: TextIO, path: Path) -> Iterator[str]:
    """The lines of a text.

    Raises:
        DataError: a line is longer than a row can be.
    """
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            raise DataError(f"{path}: line {number}: longer than {LONGEST_LINE:,} characters; is this a table?")
        yield line


def codec(encoding: str) -> str:
    """The codec for an encoding; UTF-8 may start with a byte-order mark."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
