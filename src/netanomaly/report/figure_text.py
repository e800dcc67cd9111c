"""Text from data in figures: plotly reads some tags and entities in what it writes."""

from __future__ import annotations

from html import escape


def plain(text: str) -> str:
    """Text that plotly writes as it is; it knows no entities for quotes, and needs none."""
    return escape(text, quote=False)
