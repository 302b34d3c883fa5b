"""The input and the output of a batch of a broker."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pandomq import kernel
from pandomq.methods import MethodInput

if TYPE_CHECKING:
    from pandomq.broker.client import Client
    from pandomq.errors import ConnectionFault

Input: TypeAlias = "kernel.PublishRun | kernel.SettleRun | MethodInput"


class BatchOutcome(NamedTuple):
    proposal: bytes | None
    closing: "tuple[tuple[Client, ConnectionFault], ...]"
    rest: "tuple[tuple[Client, Sequence[Input]], ...]" = ()
    """Inputs that are not handled yet, because too much output waits to be written to these clients, or because they
    wait for a message that is on the disk."""
    prompt: bool = False
    """A client waits for the proposal to be received."""
