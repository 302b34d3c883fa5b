"""One event, one line; nothing that a client sends can forge another, and no secret gets out."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pandomq.runtime.logs import LogFormat, set_up_logs

log = logging.getLogger("pandomq.test")


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(form: LogFormat, message: str, *arguments: object, level: str = "info") -> str:
    stream = io.StringIO()
    set_up_logs(level, form, stream)
    log.warning(message, *arguments)
    return stream.getvalue()


def test_text_is_time_level_and_message() -> None:
    line = logged("text", "connection %s closed", "127.0.0.1:1")
    assert line.endswith(" WARNING connection 127.0.0.1:1 closed\n")
    assert line[:2] == "20"


def test_json_is_an_object_a_line() -> None:
    event = json.loads(logged("json", "connection %s closed", "127.0.0.1:1"))
    assert event["level"] == "warning"
    assert event["logger"] == "pandomq.test"
    assert event["message"] == "connection 127.0.0.1:1 closed"
    assert event["time"].endswith("Z")
    assert len(event["time"]) == len("2026-01-01T00:00:00.000Z")


@given(st.text())
@example("x\n2026-01-01 00:00:00,000 INFO forged")
@example("\u2028\x85\x1b[2J")
def test_a_hostile_name_stays_on_its_line(name: str) -> None:
    text = logged("text", "queue %s", name)
    assert len(text.splitlines()) == 1
    assert text.removesuffix("\n").isprintable()
    line = logged("json", "queue %s", name)
    assert len(line.splitlines()) == 1
    assert "://" in name or json.loads(line)["message"] == f"queue {name}"


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_login_in_a_url_is_masked(form: LogFormat) -> None:
    line = logged(form, "linked to amqp://user:hush@host:5672/v and http://x:hu%%40sh@h")
    assert "hu" not in line
    assert "amqp://***@host:5672/v" in line


def logged_bug(form: LogFormat) -> list[str]:
    stream = io.StringIO()
    set_up_logs("info", form, stream)
    try:
        raise RuntimeError("broken\nin two lines")
    except RuntimeError:
        log.exception("it is our fault")
    return stream.getvalue().splitlines()


def test_a_bug_shows_its_stack_with_its_event() -> None:
    first, second, *others = logged_bug("text")
    assert first.endswith("ERROR it is our fault")
    assert second == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") for line in others)
    (line,) = logged_bug("json")
    assert "RuntimeError: broken" in json.loads(line)["exception"]


def test_records_below_the_level_are_not_logged() -> None:
    assert logged("text", "x", level="error") == ""
