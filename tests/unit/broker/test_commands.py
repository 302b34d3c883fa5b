"""Commands come out of the log as they went in."""

from hypothesis import given
from hypothesis import strategies as st

from pandomq.broker import commands
from pandomq.broker.commands import Command, decode_command, encode_command

KINDS = (
    commands.DeclareExchange,
    commands.DeleteExchange,
    commands.DeclareQueue,
    commands.DeleteQueue,
    commands.BindQueue,
    commands.UnbindQueue,
    commands.BindExchange,
    commands.UnbindExchange,
)


numbers = {
    commands.DeclareExchange: {"waiting_queue_id": st.integers(0, 2**63)},
    commands.DeclareQueue: {"queue_id": st.integers(0, 2**63), "now_ms": st.integers(0, 2**63)},
}


@given(st.one_of([st.builds(kind, **numbers.get(kind, {})) for kind in KINDS]))
def test_round_trip(command: Command) -> None:
    assert decode_command(encode_command(command)) == command


def test_they_are_commands() -> None:
    assert set(KINDS) <= set(Command.__args__)
