"""New inputs from old ones: bytes, lines, cells and numbers are changed, and files are spliced."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

TOKENS = (
    *(b"", b" ", b"\t", b"\n", b"\r", b"\r\n", b"\0", b'"', b'""', b"'", b",", b";", b"|", b"\\", b"#", b"%", b"="),
    *(
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xfe\xff",
        b"\x1f\x8b",
        b"PK\x03\x04",
        b"PAR1",
        b"\x1b[2J",
        b"\x85",
        b"\xe2\x80\xa8",
    ),
    *(b"nan", b"NaN", b"inf", b"-Infinity", b"1e400", b"1e-400", b"0x10", b"1_000", b"1.000,5", b"-0", b"+", b"true"),
    *(
        b"None",
        b"null",
        b"NA",
        b"no_data",
        b"unknown",
        b"\xd9\xa1",
        b"\xe2\x88\x921",
        b"\xc2\xa0",
        b"\xff",
        b"\xed\xa0\x80",
    ),
    *(b"0", b"1", b"-1", b"255", b"65536", b"2147483648", b"9223372036854775807", b"9223372036854775808", b"1e308"),
    *(b"0000-01-01T00:00:00Z", b"9999-12-31T23:59:59Z", b"2026-02-30T00:00:00Z", b"2026-03-29T02:30:00", b"24:00:00"),
    *(b"&a ", b"*a", b"<<: ", b"!!python/object:os.system ", b"!!set ", b"? ", b"- ", b": ", b"[", b"]", b"{", b"}"),
    *(
        b"auto",
        b"[]",
        b"{}",
        b"../../etc/passwd",
        b"1s",
        b"-5s",
        b"99999999d",
        b"=cmd|' /C calc'!A0",
        b"@x",
        b"x" * 300,
    ),
)
"""What tends to be read wrongly."""
_SEPARATORS = (b",", b";", b"\t", b":", b" ")


def mutate(seed: bytes, others: Sequence[bytes], random: Random, most: int) -> bytes:
    """A changed copy of `seed` of at most `most` bytes; `others` lend pieces."""
    data = seed
    for _ in range(1 + min(random.getrandbits(3), random.getrandbits(2), random.getrandbits(2))):
        data = random.choice(_MUTATIONS)(data, others, random)[:most]
    return data


def _flip(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    if not data:
        return bytes([random.getrandbits(8)])
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << random.randrange(8))]) + data[place + 1 :]


def _byte(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    place = random.randint(0, len(data))
    return data[:place] + bytes([random.getrandbits(8)]) + data[place + random.getrandbits(1) :]


def _token(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    place = random.randint(0, len(data))
    return data[:place] + random.choice(TOKENS) + data[place + random.choice((0, 0, 1, 4)) :]


def _cut(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    start, end = sorted((random.randint(0, len(data)), random.randint(0, len(data))))
    return data[:start] + data[end:] if random.random() < 0.7 else data[:end]


def _repeat(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    start = random.randint(0, len(data))
    piece = data[start : start + random.randint(1, 40)]
    return data[:start] + piece * random.randint(2, 9) + data[start:]


def _splice(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    other = random.choice(others)
    return data[: random.randint(0, len(data))] + other[random.randint(0, len(other)) :]


def _lines(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """Lines are swapped, repeated, dropped, or taken from another input."""
    lines = data.split(b"\n")
    one, two = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(4)
    if kind == 0:
        lines[one], lines[two] = lines[two], lines[one]
    elif kind == 1:
        lines[one:one] = [lines[two]] * random.randint(1, 4)
    elif kind == 2:
        del lines[one]
    else:
        lines.insert(one, random.choice(random.choice(others).split(b"\n")))
    return b"\n".join(lines)


def _cells(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """A cell of a line becomes another cell, a token, or both at once."""
    lines = data.split(b"\n")
    place = random.randrange(len(lines))
    separator = random.choice([mark for mark in _SEPARATORS if mark in lines[place]] or [b","])
    cells = lines[place].split(separator)
    donor = random.choice(lines).split(separator)
    cell = random.randrange(len(cells))
    cells[cell] = random.choice((random.choice(donor), random.choice(TOKENS), cells[cell] + random.choice(TOKENS)))
    lines[place] = separator.join(cells)
    return b"\n".join(lines)


def _digits(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """One digit becomes another, or many."""
    places = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return _token(data, others, random)
    place = random.choice(places)
    return data[:place] + b"%d" % random.choice((random.randrange(10), random.getrandbits(40))) + data[place + 1 :]


_MUTATIONS = (_flip, _byte, _token, _token, _cut, _repeat, _splice, _lines, _lines, _cells, _cells, _digits)
