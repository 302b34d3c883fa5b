"""Commands come out of the log as they went in."""

from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from pandomq.broker.log import commands
from pandomq.broker.log.commands import Command, decode_command, encode_command

KINDS = get_args(commands.TopologyCommand) + get_args(commands.AdministrativeCommand)


numbers: dict[type, dict[str, Any]] = {
    commands.DeclareExchange: {"waiting_queue_id": st.integers(0, 2**63)},
    commands.DeclareQueue: {"queue_id": st.integers(0, 2**63), "now_ms": st.integers(0, 2**63)},
    commands.PutPolicy: {"priority": st.integers(-(2**31), 2**31)},
    commands.PutLimits: {
        "values": st.dictionaries(st.text(max_size=3), st.none() | st.integers(-1, 2**53), max_size=3)
    },
}


@given(st.one_of([st.builds(kind, **numbers.get(kind, {})) for kind in KINDS]))
def test_round_trip(command: Command) -> None:
    assert decode_command(encode_command(command)) == command


def test_the_examples_are_commands() -> None:
    assert set(KINDS) <= set(get_args(Command))
