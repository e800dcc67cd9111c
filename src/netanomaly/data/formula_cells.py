"""Text that a spreadsheet would run as a formula, marked when it is written and unmarked when it is read.

A cell that begins with `=`, `+`, `-` or `@` is a formula to most spreadsheets, whoever named the series so; a quote in
front makes it text (https://owasp.org/www-community/attacks/CSV_Injection). `original(neutral(text)) == text` for any
text: one that has such a quote already gets another.
"""

from __future__ import annotations

import re

_FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_HARMLESS = re.compile(r"[-+]*(?:[0-9.,]+(?:e[-+]?[0-9]+)?|inf|infinity|nan)?\s*%?", re.IGNORECASE)
"""Numbers, and signs alone."""


def neutral(text: str) -> str:
    """The text with a quote in front if a spreadsheet could take it for a formula; numbers stay as they are."""
    return f"'{text}" if _is_risky(text) else text


def original(text: str) -> str:
    """What `neutral` was given."""
    return text[1:] if text.startswith("'") and _is_risky(text) else text


def _is_risky(text: str) -> bool:
    if text[:1].isalnum():  # as nearly all are
        return False
    bare = text.lstrip("'")
    return _FORMULA.match(bare) is not None and _HARMLESS.fullmatch(bare.strip()) is None
