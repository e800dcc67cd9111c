"""What is printed for people: text from files cannot move the cursor, set a title or hide itself."""

from __future__ import annotations

import json
import logging


def printable(text: str) -> str:
    """The text with every character but line breaks that a terminal might act upon, or not show, as JSON escapes it.

    So ESC becomes `\\u001b`; JSON stays the same JSON.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text)


def tell(text: str = "") -> None:
    """Print a result to standard output."""
    print(printable(text))


class PrintableFormatter(logging.Formatter):
    """Log records as text that is safe to print."""

    def format(self, record: logging.LogRecord) -> str:
        """As `logging.Formatter` has it."""
        return printable(super().format(record))


def log_to_stderr(level: int) -> None:
    """Let the package's log be lines on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter("%(message)s"))
    logging.basicConfig(handlers=[handler], level=level, force=True)
