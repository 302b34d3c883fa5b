"""Faults carry what RabbitMQ's clients expect."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pandomq import errors
from pandomq.errors import ChannelFault, ConnectionFault, Fault

SOFT = {
    311: errors.content_too_large,
    312: errors.no_route,
    313: errors.no_consumers,
    403: errors.access_refused,
    404: errors.not_found,
    405: errors.resource_locked,
    406: errors.precondition_failed,
}
HARD = {
    320: errors.connection_forced,
    402: errors.invalid_path,
    501: errors.frame_error,
    502: errors.syntax_error,
    503: errors.command_invalid,
    504: errors.channel_error,
    505: errors.unexpected_frame,
    506: errors.resource_error,
    530: errors.not_allowed,
    540: errors.not_implemented,
    541: errors.internal_error,
}


@pytest.mark.parametrize(("code", "make"), [*SOFT.items(), *HARD.items()])
def test_code_prefix_and_scope(code: int, make: Callable[[str], Fault]) -> None:
    fault = make("why")
    assert fault.reply_code == code
    assert fault.reply_text == f"{make.__name__.upper()} - why"
    assert isinstance(fault, ChannelFault if code in SOFT else ConnectionFault)
    assert (fault.class_id, fault.method_id) == (0, 0)


def test_a_refused_login_ends_the_connection() -> None:
    fault = errors.login_refused("no")
    assert (fault.reply_code, fault.reply_text) == (403, "ACCESS_REFUSED - no")
    assert isinstance(fault, ConnectionFault)


def test_the_first_to_name_the_method_is_right() -> None:
    fault = errors.not_found("x").at(50, 10)
    assert (fault.at(60, 20).class_id, fault.method_id) == (50, 10)


@pytest.mark.parametrize("explanation", ["x" * 300, "ü" * 200, "x" * 252 + "ü", "\udcff" * 300])
def test_long_texts_are_cut_to_a_short_string(explanation: str) -> None:
    text = errors.not_found(explanation).reply_text
    assert len(text.encode("utf-8", "surrogateescape")) <= 255
    assert text.endswith("...")


def test_texts_that_fit_are_left_alone() -> None:
    explanation = "x" * (255 - len("NOT_FOUND - "))
    assert errors.not_found(explanation).reply_text == f"NOT_FOUND - {explanation}"
