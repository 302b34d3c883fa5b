"""The rules of `make lint` for names of tests, documents, docstrings and comments: long lines, headless sentences,
broken links."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.house_rules import (
    anchors,
    breaches,
    broken_links,
    comments_and_docstrings,
    headless_cells,
    headless_sentences,
    headless_source,
    long_lines,
    without_code,
)

PAGE = Path("docs/page.md")
LONG = "word " * 23 + "word"
ROOT = Path(__file__).parents[2]


def test_a_line_is_too_long_beyond_120_columns() -> None:
    assert list(long_lines(PAGE, f"short\n\n{LONG}x")) == []
    assert list(long_lines(PAGE, f"short\n\n{LONG}xy")) == ["docs/page.md:3: 121 columns, at most 120"]


@pytest.mark.parametrize(
    "text",
    [
        f"| {LONG} | {LONG} |",
        f"```\n{LONG} {LONG}\n```",
        f"  ```python\n{LONG} {LONG}\n  ```",
        f"See [the page](https://example.com/{'x' * 100}).",
        f"See [the page](other/{'x' * 110}.md#anchor).",
        f"https://example.com/{'x' * 120}",
    ],
)
def test_tables_code_and_addresses_may_be_wider(text: str) -> None:
    assert list(long_lines(PAGE, text)) == []


def test_a_line_behind_a_code_block_counts() -> None:
    assert list(long_lines(PAGE, f"```\n{LONG} x\n```\n{LONG} x")) == ["docs/page.md:4: 121 columns, at most 120"]


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("Who shows one must show a good one.", 1, "Who"),
        ("The broker stops. What it holds is lost.", 1, "What"),
        ("The first paragraph.\n\nThe second one.\nWhoever asks is\ntold.", 3, "Whoever"),
        ("- First.\n- Who is late waits.", 2, "Who"),
        ("1. What waits is sent.", 1, "What"),
        ("| key | Who signs. |", 1, "Who"),
        ("**Who asks** is told.", 1, "Who"),
        ("It is so: What is not, is not.", 1, "What"),
        ("What is left", 1, "What"),
        ("Whatever was sent\nis lost.", 1, "Whatever"),
        ("It stops. Whose turn it is does not matter.", 1, "Whose"),
    ],
)
def test_a_sentence_needs_a_subject(text: str, line: int, word: str) -> None:
    assert [breach.partition(" a sentence")[0] for breach in headless_sentences(PAGE, text)] == [f"{PAGE}:{line}:"]
    assert [f"'{word}'" in breach for breach in headless_sentences(PAGE, text)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "What does the broker do?",
        "The log ends. Which broker is the root? Who answers? It is the root.",
        "Where does it go, and\nwhat comes back?",
        "## What the design excludes",
        "The broker knows who asks. It sends what it has.",
        "`What` is a word.",
        "```\nWho asks is told.\n```",
        "| what | who |",
    ],
)
def test_questions_headings_code_and_other_sentences_are_left_alone(text: str) -> None:
    assert list(headless_sentences(PAGE, text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "A backup that hears nothing waits.",
        "The broker takes\noffice.",
        "| key | whoever signs it |",
        "- Errands wait.",
        "The root resigns.",
        "The message is lost all the same.",
    ],
)
def test_words_of_the_former_dialect_are_found(text: str) -> None:
    (breach,) = headless_sentences(PAGE, text)
    assert breach.startswith(f"{PAGE}:1: '")


@pytest.mark.parametrize("word", ["who", "whoever", "whom", "whose", "what", "whatever"])
@pytest.mark.parametrize("keyword", ["def", "    def", "async def"])
def test_the_name_of_a_test_needs_a_subject(keyword: str, word: str) -> None:
    (breach,) = breaches(Path("tests/test_x.py"), f"import pytest\n\n\n{keyword} test_{word}_waits() -> None: ...\n")
    assert breach.startswith(f"tests/test_x.py:4: test_{word}_waits begins with '{word}'")


@pytest.mark.parametrize("name", ["test_a_client_who_waits", "test_whole_chunks", "what_is_wrong", "test_whatsoever"])
def test_other_names_are_left_alone(name: str) -> None:
    assert list(breaches(Path("tests/test_x.py"), f"def {name}() -> None: ...\n")) == []


def test_a_cell_needs_a_subject_but_a_head_does_not() -> None:
    table = "| what | what happens at the limit |\n| --- | --- |\n| who | what is left waits |\n| `who` | what then? |"
    assert list(headless_cells(PAGE, table)) == [f"{PAGE}:3: a cell begins with 'what': name its subject"]


SOURCE = '''"""A module.

Who asks is told.
"""

LIMIT = 1
"""Whatever is too much."""
TEXT = """What is no docstring."""


def answer():
    r"""What is the answer? Whoever asks is told."""
    # A comment
    # of two lines. What is left
    # goes.
    call("Who is here.")  # Whose turn it is

    # `What` is a word; what is it?
    return """What is no docstring either."""
'''
CYTHON = '''cdef class Ring:
    """What waits."""
    cdef const unsigned char *data  # Who owns it frees it.

    cdef int at(self, Py_ssize_t place) except? -1:
        return <int>self.data[place]
'''


def test_a_sentence_of_a_docstring_or_comment_needs_a_subject() -> None:
    found = [breach.partition(" and")[0] for breach in headless_source(Path("src/x.py"), SOURCE)]
    assert sorted(found) == [
        "src/x.py:12: a sentence begins with 'Whoever'",
        "src/x.py:13: a sentence begins with 'What'",
        "src/x.py:16: a sentence begins with 'Whose'",
        "src/x.py:3: a sentence begins with 'Who'",
        "src/x.py:7: a sentence begins with 'Whatever'",
    ]
    found = [breach.partition(": a")[0] for breach in headless_source(Path("src/x.pyx"), CYTHON)]
    assert found == ["src/x.pyx:2", "src/x.pyx:3"]


def test_comment_lines_that_follow_each_other_are_one_text() -> None:
    source = "# One\n# text.\n\n# Another one.\na = 1  # third\nb = 2  # fourth\n"
    assert list(comments_and_docstrings(source)) == [
        (1, "One\ntext."),
        (4, "Another one."),
        (5, "third"),
        (6, "fourth"),
    ]


def test_code_is_blanked_out_and_lines_stay_where_they_are() -> None:
    assert without_code("a `b\nc` d\n```\ne\n```\nf") == "a xx\nxx d\n\n\n\nf"


def test_anchors_are_those_of_github() -> None:
    text = "# One, `two` & [three](x.md)\n```\n# no\n```\n## `[node.tls]`\n## Size\n### Size\n## a_b – c"
    assert anchors(text) == {"one-two--three", "nodetls", "size", "size-1", "a_b--c"}


def test_links_lead_somewhere(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "other.md").write_text("# Title\n")
    text = (
        "# Here\n[a](other.md) [b](other.md#title) [c](#here) [d](https://example.com/#no) [e](../docs)\n"
        "`[f](none.md)`\n[g\nh](none.md) [i](other.md#none) [j](#none)"
    )
    (tmp_path / PAGE).write_text(text)
    assert list(broken_links(PAGE, text, tmp_path)) == [
        "docs/page.md:4: there is no file none.md",
        "docs/page.md:5: other.md has no heading with the anchor #none",
        "docs/page.md:5: page.md has no heading with the anchor #none",
    ]
