"""Wraps the paragraphs of a written page, as the house rules require of documents."""

from __future__ import annotations

import re
import textwrap

COLUMNS = 120
APART = re.compile(r"```.*?```|[^\n](?:\n?[^\n])*", re.DOTALL)
"""A code block, or lines without an empty line between them."""
AS_IT_IS = ("```", "|", "#", "- ")
"""The beginnings of code blocks, tables, headings and lists."""


def wrapped(page: str) -> str:
    return APART.sub(lambda part: part[0] if part[0].startswith(AS_IT_IS) else _filled(part[0]), page)


def _filled(paragraph: str) -> str:
    return textwrap.fill(paragraph, COLUMNS, break_long_words=False, break_on_hyphens=False)
