"""Patterns mean what Python's own expressions mean, and cost what their length and the name's allow."""

import re
import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pandomq.broker.administration.pattern_syntax import PatternError
from pandomq.broker.administration.patterns import compile_pattern
from pandomq.limits import PATTERN_BYTES_MAX

texts = st.text(alphabet="ab.-_ \nÄé", max_size=8)
pieces = st.sampled_from(
    [
        "a",
        "b",
        ".",
        r"\.",
        "-",
        "^",
        "$",
        r"\b",
        r"\B",
        r"\A",
        r"\w",
        r"\W",
        r"\d",
        r"\s",
        "[ab]",
        "[^a]",
        "[a-c.]",
        "é",
        "(?:)",
    ]
)
quantifiers = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "+?"])


def _repeated(piece: str, quantifier: str) -> str:
    return f"(?:{piece}){quantifier}"


patterns = st.recursive(
    pieces,
    lambda inner: st.one_of(
        st.builds(_repeated, inner, quantifiers),
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda branches: f"(?:{'|'.join(branches)})"),
        inner.map(lambda item: f"({item})"),
        inner.map(lambda item: f"(?i:{item})"),
        inner.map(lambda item: f"(?={item})"),
        inner.map(lambda item: f"(?!{item})"),
    ),
    max_leaves=8,
)


@given(patterns, texts)
@example("(?:a*)*b", "aab")
@example("(?:(?:a|)*|b)+$", "ab")
@example("(?!(?!a)b)a", "a")
@example("$", "\n")
@example("^ab", "abc")
@example("^ab", "ba")
@example("^ab.*", "ab\n")
@example("^a^b", "ab")
@example("^ab$", "abc")
def test_the_same_as_an_obvious_second_definition(pattern: str, text: str) -> None:
    # Python alone thinks that nothing, which has no boundary, does not match \\B.
    assume(text or r"\B" not in pattern)
    assert compile_pattern(pattern).matches(text) is bool(re.search(pattern, text, re.ASCII)), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("", "anything", None),
        ("^$", "", "a"),
        (r"^(?!amq\.).*", "orders", "amq.gen-1"),
        (r"^orders\.", "orders.eu", "ordersXeu"),
        ("(?<!test)$", "orders", "orders.test"),
        ("(?<=eu|us)-x", "q.us-x", "q.as-x"),
        ("^[[:alpha:]_]+$", "a_b", "a1"),
        ("^[^[:digit:]]+$", "ab", "a1"),
        ("^[]a]+$", "]a", "b"),
        (r"^[\d.-]+$", "1.2-3", "a"),
        (r"^[\W]+$", "-.", "a"),
        (r"^\x41\x{e4}$", "Aä", "a"),
        ("(?i)^ÄPFEL$", "äpfel", "apfel"),
        ("^(?<name>a)$", "a", "b"),
        ("^(?P<name>a)$", "a", "b"),
        ("^a(?#what follows)b$", "ab", "a"),
        ("^{username}-", "{username}-1", "username-1"),
        ("a{,2}", "a{,2}", "aa"),
        ("^.$", "\0", "\n"),
        ("(?s)^.$", "\n", ""),
        (r"a\Z", "a\n", "a\n\n"),
        (r"a\z", "a", "a\n"),
    ],
)
def test_patterns_match_as_expected(pattern: str, matching: str, other: str | None) -> None:
    compiled = compile_pattern(pattern)
    assert compiled.matches(matching)
    assert other is None or not compiled.matches(other)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing )"),
        (")", "unmatched parentheses"),
        ("(a", "missing )"),
        ("*", "nothing to repeat"),
        ("[a", "missing terminating ] for character class"),
        ("[", "missing terminating ] for character class"),
        ("[]", "missing terminating ] for character class"),
        ("[b-a]", "range out of order in character class"),
        ("[[:letter:]]", "unknown POSIX class name"),
        ("\\", "\\ at end of pattern"),
        ("a{2,1}", "numbers out of order in {} quantifier"),
        ("a{70000}", "number too big in {} quantifier"),
        ("a++", "possessive repetition is not supported"),
        (r"(a)\1", r"\1 is not supported"),
        (r"\p{L}", r"\p is not supported"),
        (r"\x{110000}", "the character number is out of range"),
        (r"\x{12", "missing terminating } after \\x{"),
        (r"\xg", "the character number is out of range"),
        ("(?>a)", "this kind of group is not supported"),
        ("(?R)", "this kind of group is not supported"),
        ("(?", "this kind of group is not supported"),
        ("(?<1>a)", "syntax error in subpattern name (missing terminator)"),
        ("(?#a", "missing ) after comment"),
        ("(?<=a$)", "lookbehind assertion may contain characters only"),
        ("(" * 60 + ")" * 60, "parentheses are too deeply nested"),
        ("a{600}", "pattern is too large"),
        ("(?:a{20}){30}", "pattern is too large"),
        ("(?:(?:){60000}){60000}", "pattern is too large"),
        ("a" * (PATTERN_BYTES_MAX + 1), f"pattern is longer than {PATTERN_BYTES_MAX} bytes"),
    ],
)
def test_malformed_patterns_are_refused_with_a_reason(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a*)*b",
        "((a|aa)+)+$",
        ".*.*.*.*.*.*.*.*x",
        "(?:a?){80}a{100}$",
        "(?=(a+)+$)(?!.*.*.*x)(a*)*c",
        "(?<=(?:a|a?)+)b",
        "(?:a|b|ab|.){60}$",
    ],
)
def test_no_pattern_takes_long(pattern: str) -> None:
    compiled = compile_pattern(pattern)
    start = time.process_time()
    for number in range(20):
        compiled.matches("a" * (254 - number) + "!")
    assert time.process_time() - start < 5  # milliseconds each; one that backtracks takes longer than the universe has
