"""Names with anything in them: one segment of a path on the way out, one harmless line on the way in."""

from __future__ import annotations

import json
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pandomq.cli.api import path_of
from pandomq.cli.output import aligned, cell, rich_table
from tests.unit.cli.conftest import Type
from tests.unit.cli.fake_api import FakeApi

# Arguments from a shell: bytes that are no UTF-8 become lone surrogates.
NAMES = st.binary(max_size=255).map(lambda name: name.decode("utf-8", "surrogateescape"))

HOSTILE = [
    "/",
    "a/b",
    "..",
    "%2F",
    "a?b=c#d",
    "NUL\0NUL",
    "line\r\nX-Injected: yes",
    "\x1b]0;owned\x07",
    "\u202eevil",
    "ünïcödé 🐇",
    "[bold red]not markup[/]",
    "x" * 255,
    "é" * 127,
    "-",
    " ",
    "a+b c",
]


@given(st.lists(NAMES, min_size=1, max_size=4))
@example(["/", "..", "a\0b", "%2F"])
def test_each_name_is_one_segment_and_comes_back_byte_for_byte(names: list[str]) -> None:
    path = path_of(tuple(names))
    assert path.isascii()
    assert not set(path) & set("?#% \r\n\0") - {"%"}
    assert [unquote_to_bytes(part) for part in path.split("/")] == [
        name.encode("utf-8", "surrogateescape") for name in names
    ]


@given(st.text())
@example("\u2028")
def test_a_cell_is_printable_and_on_one_line(text: str) -> None:
    shown = cell(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    if text.isprintable():
        assert shown == text


@pytest.mark.parametrize("name", HOSTILE)
def test_commands_quote_names(ask: Type, api: FakeApi, name: str) -> None:
    quoted = path_of((name,))
    api.on("DELETE", f"/api/queues/{quoted}/{quoted}/contents")
    api.on("DELETE", f"/api/users/{quoted}")
    api.on("GET", f"/api/queues/{quoted}", [])
    assert ask("ctl", "purge_queue", "-p", name, "--", name).exit_code == 0
    assert ask("users", "delete", "--", name).exit_code == 0
    assert ask("queues", "--vhost", name).exit_code == 0
    assert [request.target for request in api.requests] == [
        f"/api/queues/{quoted}/{quoted}/contents",
        f"/api/users/{quoted}",
        f"/api/queues/{quoted}",
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_lists_show_names_without_obeying_them(ask: Type, api: FakeApi, name: str) -> None:
    api.on("GET", "/api/queues", [{"name": name, "vhost": name, "messages": 1}])
    lines = ask("queues", "--columns", "vhost,name,messages").stdout.split("\n")
    assert lines == ["vhost\tname\tmessages", f"{cell(name)}\t{cell(name)}\t1", ""]
    as_json = ask("queues", "--json").stdout
    assert json.loads(as_json)[0]["name"] == name
    assert "\x1b" not in as_json


def test_a_reason_for_a_close_stays_one_header(ask: Type, api: FakeApi) -> None:
    api.on("DELETE", "/api/connections/c")
    assert ask("ctl", "close_connection", "c", "bye\r\nX-Injected: yes é").exit_code == 0
    headers = api.requests[0].headers
    assert "X-Injected" not in headers
    assert headers["X-Reason"] == "bye\\r\\nX-Injected: yes ?"


def test_tables_take_names_literally() -> None:
    from rich.console import Console

    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(rich_table(["name", "messages"], [["[bold red]x[/]\x1b[31m", 5]]))
    text = console.export_text()
    assert "[bold red]x[/]\\x1b[31m" in text
    assert "\x1b" not in text


def test_long_lists_are_aligned_by_the_shown_width() -> None:
    text = aligned(["name", "n"], [["ab", 1], ["漢字", 22]])
    assert text == "name  n\nab    1\n漢字  22\n"
