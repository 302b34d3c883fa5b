"""What goes into a batch of a broker, and what comes out of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pandomq import kernel
from pandomq.methods import MethodInput

if TYPE_CHECKING:
    from pandomq.broker.client import Client
    from pandomq.errors import ConnectionFault

Input: TypeAlias = "kernel.PublishRun | kernel.SettleRun | MethodInput"


class Outcome(NamedTuple):
    proposal: bytes | None
    closing: "tuple[tuple[Client, ConnectionFault], ...]"
    rest: "tuple[tuple[Client, Sequence[Input]], ...]" = ()
    """What is not handled yet, because too much of what was answered waits to be written to these clients, or because
    they wait for a message that is on the disk."""
    prompt: bool = False
    """Somebody waits for the proposal to be received."""
