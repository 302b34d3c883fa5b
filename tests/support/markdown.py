"""The fenced blocks of a Markdown page: in which language, under which heading, at which line.

A block's key is the text of its heading and its number under that heading, from 1 on. It remains the same when text is
added elsewhere on the page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FENCE: Final = re.compile(r"^(?P<indent> *)```(?P<language>\S*)\s*$")
HEADING: Final = re.compile(r"^#+ (?P<text>.+)$")
PROMPT: Final = "$ "

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    heading: str
    number: int
    language: str
    line: int
    """The line of the opening fence, from 1 on."""
    text: str

    @property
    def key(self) -> Key:
        return self.heading, self.number

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """Every line; in a transcript only the lines after a prompt. Comments remain, because a shell skips them."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        prompted = [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
        return prompted or lines


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order. Raises ValueError if the last one has no end."""
    found: list[Block] = []
    heading, number = "", 0
    begin, opening, inside = 0, None, list[str]()
    for line_number, line in enumerate(page.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if opening is not None:
            if fence is None or fence["language"]:
                inside.append(line.removeprefix(opening["indent"]))
                continue
            number += 1
            text = "".join(f"{one}\n" for one in inside)
            found.append(Block(page.name, heading, number, opening["language"], begin, text))
            opening = None
        elif fence is not None:
            begin, opening, inside = line_number, fence, []
        elif title := HEADING.match(line):
            heading, number = title["text"].replace("`", ""), 0
    if opening is not None:
        raise ValueError(f"{page.name}:{begin}: this block has no end")
    return found


def block(page: Path, key: Key) -> Block:
    return next(one for one in blocks_of(page) if one.key == key)
