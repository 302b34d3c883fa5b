"""Checks the project's own rules that no linter knows: the length of files, the names of modules and tests, and the
style of documents, docstrings, comments and messages.

Prints each breach and exits with 1 if there is any.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools import house_rules_strings

ROOT = Path(__file__).parent.parent
SOURCES = ("src", "tests", "tools")
SPEAKING = ("src", "tools")
"""The folders with texts that the program shows."""
SUFFIXES = {".py", ".pyi", ".pyx", ".pxi", ".pxd"}
LINES_MAX = 400
# A module with such a name has no subject, and becomes the place where everything ends up.
VAGUE = re.compile(r"^(.*_)?(utils?|helpers?|managers?|misc|common)$")
POSTPONED = re.compile(r"#\s.*\b(TODO|FIXME|XXX)\b")
HEADLESS_TEST = re.compile(r"^\s*(?:async )?def (test_(who|whoever|whom|whose|what|whatever)_\w+)")
"""The name of a test states a law, so it begins with the subject of a sentence, as `test_a_client_that_...`."""

# In these folders the sentences of docstrings and comments need a subject, as in documents.
WORDED = ("src", "tools")
# Tokens behind which a statement begins.
BEFORE_STATEMENT = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
# Tokens that separate lines, and no statements.
BETWEEN = {tokenize.NL, tokenize.COMMENT}

DOCUMENTS = ("*.md", "docs/**/*.md")
COLUMNS_MAX = 120
FENCE = re.compile(r"^\s*(```|~~~)")
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
TABLE_ROW = re.compile(r"^\s*\|")
TABLE_RULE = re.compile(r"^\s*\|[\s:|-]+$")
HEADLESS_CELL = re.compile(r"(?:who|what|whatever)\s+[^?\s]+\s+[^?]+$")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ADDRESS = re.compile(r"(?<=\])\([^)\s]+\)|https?://\S+")
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
# A sentence begins with its block, or behind the end of another one; emphasis and brackets do not count.
HEADLESS = re.compile(r"(?:^|(?<=[.!?:]))[\s*_(\"“]*\b(Who|Whoever|Whose|What|Whatever)\b[^.!?]*([.!?]|$)")


def breaches(path: Path, text: str) -> Iterator[str]:
    lines = text.splitlines()
    if len(lines) > LINES_MAX:
        yield f"{path}: {len(lines)} lines, at most {LINES_MAX}: look for the second noun"
    if VAGUE.match(path.stem):
        yield f"{path}: the name says nothing about what the module holds"
    for number, line in enumerate(lines, start=1):
        if POSTPONED.search(line):
            yield f"{path}:{number}: work left for later belongs in the tracker"
        if test := HEADLESS_TEST.match(line):
            yield f"{path}:{number}: {test[1]} begins with '{test[2]}': name the subject of the law that it states"
    if path.suffix == ".py" and path.parts[0] in SPEAKING:
        for number, breach in house_rules_strings.breaches(text):
            yield f"{path}:{number}: {breach}"


def without_code(text: str) -> str:
    """The text with its code blocks and code spans blanked out; each line keeps its place."""
    lines, fenced = [], False
    for line in text.splitlines():
        is_fence = FENCE.match(line) is not None
        lines.append("" if fenced or is_fence else line)
        fenced ^= is_fence
    return CODE.sub(lambda span: re.sub(r"[^\n]", "x", span[0]), "\n".join(lines))


def long_lines(path: Path, text: str) -> Iterator[str]:
    """Tables and code blocks may be wider, and addresses do not count: none of them can be wrapped."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        is_fence = FENCE.match(line) is not None
        fenced ^= is_fence
        if fenced or is_fence or TABLE_ROW.match(line):
            continue
        columns = len(ADDRESS.sub("", line))
        if columns > COLUMNS_MAX:
            yield f"{path}:{number}: {columns} columns, at most {COLUMNS_MAX}"


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items and cells of tables, each with the number of its first line; no headings."""
    first, block = 0, ""
    for number, line in enumerate([*without_code(text).splitlines(), ""], start=1):
        is_row, item = TABLE_ROW.match(line), LIST_ITEM.match(line)
        if block and (not line.strip() or is_row or item or HEADING.match(line)):
            yield first, block
            block = ""
        if is_row:
            yield from ((number, cell.strip()) for cell in line.split("|") if cell.strip())
        elif line.strip() and not HEADING.match(line):
            first = first if block else number
            block = f"{block} {line[item.end() :] if item else line.strip()}".strip()


def headless_sentences(path: Path, text: str, first_line: int = 1) -> Iterator[str]:
    """Sentences whose subject is a clause without a noun: `Who has handed over lingers.` Questions may begin so."""
    for number, block in blocks(text):
        at = f"{path}:{first_line + number - 1}"
        for sentence in HEADLESS.finditer(block):
            if sentence[2] != "?":
                yield f"{at}: a sentence begins with '{sentence[1]}' and is no question: name its subject"
        for word in house_rules_strings.DIALECT.finditer(block):
            yield f"{at}: '{word[0]}' is a word of the former dialect: {house_rules_strings.advice(word[0])}"


def headless_cells(path: Path, text: str) -> Iterator[str]:
    """Cells of a table that begin, in lower case, with such a clause. The cells of a table's head may."""
    lines = without_code(text).splitlines()
    for number, (line, following) in enumerate(zip(lines, [*lines[1:], ""], strict=True), start=1):
        if TABLE_ROW.match(line) and not TABLE_RULE.match(following):
            for cell in line.split("|"):
                if HEADLESS_CELL.match(cell.strip()):
                    yield f"{path}:{number}: a cell begins with '{cell.split()[0]}': name its subject"


def comments_and_docstrings(source: str) -> Iterator[tuple[int, str]]:
    """The text of each docstring and comment, with its first line; comment lines that follow each other are one text.

    A docstring is any statement that is only a string, so the docstrings of attributes are included. Cython's sources
    have the same tokens.
    """
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    comments: list[tokenize.TokenInfo] = []
    before = tokenize.NEWLINE
    for token, following in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.type == tokenize.COMMENT:
            last = comments[-1] if comments else None
            follows = last is not None and (last.start[0] + 1, last.start[1]) == token.start
            if comments and not (follows and token.line.lstrip().startswith("#")):
                yield _text_of(comments)
                comments = []
            comments.append(token)
        elif token.type == tokenize.STRING and before in BEFORE_STATEMENT and following.type == tokenize.NEWLINE:
            yield token.start[0], token.string.lstrip("rRuU").strip("\"'")
        if token.type not in BETWEEN:
            before = token.type
    if comments:
        yield _text_of(comments)


def _text_of(comments: list[tokenize.TokenInfo]) -> tuple[int, str]:
    return comments[0].start[0], "\n".join(comment.string.lstrip("#").strip() for comment in comments)


def headless_source(path: Path, source: str) -> Iterator[str]:
    for first_line, text in comments_and_docstrings(source):
        yield from headless_sentences(path, text, first_line)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    fenced = False
    for line in text.splitlines():
        fenced ^= FENCE.match(line) is not None
        heading = None if fenced else HEADING.match(line)
        if heading is None:
            continue
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return found


def broken_links(path: Path, text: str, root: Path = ROOT) -> Iterator[str]:
    """Links to missing files, and to anchors that their pages do not have."""
    plain = without_code(text)
    for link in LINK.finditer(plain):
        if ELSEWHERE.match(link[1]):
            continue
        place, _, anchor = link[1].partition("#")
        target = (root / path).parent / place if place else root / path
        at = f"{path}:{plain.count(chr(10), 0, link.start()) + 1}"
        if not target.exists():
            yield f"{at}: there is no file {place}"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
            yield f"{at}: {target.name} has no heading with the anchor #{anchor}"


def document_breaches(path: Path, text: str, root: Path = ROOT) -> Iterator[str]:
    yield from long_lines(path, text)
    yield from headless_sentences(path, text)
    yield from headless_cells(path, text)
    yield from broken_links(path, text, root)


def main() -> int:
    found = [
        breach
        for source in SOURCES
        for path in sorted((ROOT / source).rglob("*"))
        if path.suffix in SUFFIXES and "node_modules" not in path.parts
        for breach in breaches(path.relative_to(ROOT), path.read_text())
    ]
    found += [
        breach
        for folder in WORDED
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in SUFFIXES
        for breach in headless_source(path.relative_to(ROOT), path.read_text())
    ]
    found += [
        breach
        for pattern in DOCUMENTS
        for path in sorted(ROOT.glob(pattern))
        for breach in document_breaches(path.relative_to(ROOT), path.read_text())
    ]
    print("\n".join(found) if found else "house rules kept")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
