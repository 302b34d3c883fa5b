"""Checks the words that a person reads while using the program: help texts, log lines and error messages.

A help text is a full sentence: it begins with a capital, has at least three words, and ends with a period. No help
text, log line or error message begins with a headless "Who …" or "What …", unless it is a question, and
none contains a word of the former dialect. Every option and argument has a help text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

WORDS_MIN: Final = 3
HEADLESS: Final = re.compile(r"\b(?:Who|Whoever|Whom|Whose|What|Whatever)\b[^.?!]*(?:[.!]|$)")
"""A sentence, or the rest of a text, that begins with one of these words in upper case and is no question."""
HEADLESS_START: Final = re.compile(r"(?:who|what|whatever)\b[^.?!]*(?:[.!]|$)")
"""The same at the beginning of an error message or a log line, which need not begin with a capital."""
DIALECT: Final = re.compile(
    r"(?<![-/\w])(?:(?-i:whoever|whomever)|hears?|heard|errands?|(?:into|its|their|the|takes?) office"
    r"|beginning again|nobody knows|all the same|resign(?:s|ed|ing)?)(?![-/\w])",
    re.IGNORECASE,
)
"""Words that documents and messages once used in a meaning of their own."""
SHOWN_DIALECT: Final = re.compile(r"(?<![-/\w])(?:said|told)(?![-/\w])", re.IGNORECASE)
"""Words that help texts, log lines and error messages do not use of brokers; documents and comments may."""
ADVICE: Final = {
    "who": "name the subject",
    "hea": "a broker receives",
    "err": "name the request",
    "beg": "a broker restarts",
    "nob": "the outcome is not known",
    "all": "leave it out, or write 'nevertheless'",
    "res": "a root steps down",
    "sai": "a broker reports",
    "tol": "a broker reports, a client receives",
}
HELP_CALLS: Final = {"Option", "Argument", "Typer", "Meta", "add_argument"}
SHOWN_CALLS: Final = {"Option", "Argument"}
"""Calls that declare what `--help` shows, and so need a help text."""
HELP_KEYWORDS: Final = {"help", "description"}
COMMAND_DECORATORS: Final = {"command", "callback"}
LOG_METHODS: Final = {"debug", "info", "warning", "error", "exception", "critical"}
LOGGERS: Final = {"log", "_log"}
HOLE: Final = "X"
"""Stands for what an f-string or a logging call fills in."""


def breaches(text: str) -> Iterator[tuple[int, str]]:
    """The line of each breach in a module's source, and what is wrong."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call():
                yield from _call_breaches(node)
            case ast.FunctionDef() if any(_name(one) in COMMAND_DECORATORS for one in node.decorator_list):
                shown = ast.get_docstring(node)
                if shown is not None:
                    yield from ((node.body[0].lineno, breach) for breach in help_breaches(first_paragraph(shown)))
            case ast.Raise(exc=ast.Call(args=args)):
                yield from _message_breaches(args)
            case _:
                pass


def _call_breaches(call: ast.Call) -> Iterator[tuple[int, str]]:
    name = _name(call)
    if name in HELP_CALLS:
        for keyword in call.keywords:
            shown = _text(keyword.value) if keyword.arg in HELP_KEYWORDS else None
            if shown is not None:
                yield from ((keyword.value.lineno, breach) for breach in help_breaches(shown))
        if name in SHOWN_CALLS and not any(keyword.arg in {"help", "hidden", None} for keyword in call.keywords):
            yield call.lineno, f"{name} needs a help text"
    elif name in LOG_METHODS and isinstance(call.func, ast.Attribute) and _name(call.func.value) in LOGGERS:
        yield from _message_breaches(call.args[:1])


def first_paragraph(shown: str) -> str:
    return " ".join(shown.split("\n\n")[0].split())


def help_breaches(shown: str) -> Iterator[str]:
    if not (shown[:1].isupper() and shown.endswith(".") and len(shown.split()) >= WORDS_MIN):
        yield f"a help text is a full sentence, with a capital and a period: '{shown}'"
    if HEADLESS.search(shown):
        yield f"a help text names its subject: '{shown}'"
    yield from dialect_breaches(shown)


def dialect_breaches(shown: str) -> Iterator[str]:
    for word in (*DIALECT.finditer(shown), *SHOWN_DIALECT.finditer(shown)):
        yield f"'{word[0]}' is a word of the former dialect: {advice(word[0])}"


def advice(word: str) -> str:
    """The ordinary term for such a word."""
    return ADVICE.get(word[:3].lower(), "a broker is elected root, and steps down")


def _message_breaches(arguments: list[ast.expr]) -> Iterator[tuple[int, str]]:
    for argument in arguments:
        shown = _text(argument)
        if shown is not None and (HEADLESS.search(shown) or HEADLESS_START.match(shown)):
            yield argument.lineno, f"a message names its subject: '{shown}'"
        if shown is not None:
            yield from ((argument.lineno, breach) for breach in dialect_breaches(shown))


def _name(node: ast.expr) -> str:
    match node:
        case ast.Call():
            return _name(node.func)
        case ast.Attribute():
            return node.attr
        case ast.Name():
            return node.id
        case _:
            return ""


def _text(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr():
            return "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
        case _:
            return None
