"""The front's configuration: a snapshot of it, then each command of the log.

A second snapshot comes when commands were missed: the front then computes the differences, so that its clients can
stay.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from pandomq.broker.log.commands import (
    AdministrativeCommand,
    Command,
    DeclareQueue,
    DeleteExchange,
    DeleteUser,
    DeleteVhost,
    PutVhost,
    TopologyCommand,
    decode_command,
    is_inner,
)
from pandomq.broker.log.snapshot import BrokerSnapshotHead, CommandPart, read_parts
from pandomq.broker.queues.removal import delete_queue, tell_cancelled
from pandomq.cluster.proxy.differences import commands_to_add, commands_to_undo
from pandomq.errors import connection_forced

if TYPE_CHECKING:
    from pandomq.broker.vhost import Vhost
    from pandomq.cluster.proxy.front import Front


class Feed:
    __slots__ = ("_front", "begun", "index")

    def __init__(self, front: "Front") -> None:
        self._front = front
        self.begun = False
        self.index = 0

    def begin(self, configuration: Iterable[bytes], index: int) -> None:
        commands: list[Command] = []
        state = self._front.state
        for part in read_parts(bytearray(b"".join(configuration))):
            if isinstance(part, BrokerSnapshotHead):
                state.next_queue_id = max(state.next_queue_id, part.next_queue_id)
                state.had_users = part.had_users
            elif isinstance(part, CommandPart):
                commands.append(decode_command(part.command))
        for command in commands_to_undo(state, commands):
            self._apply(command)
        for command in commands_to_add(state, commands):
            self._apply(command)
        self.begun = True
        self.index = index
        self._front.awaiting.fed()

    def follow(self, index: int, commands: Sequence[bytes]) -> None:
        if index <= self.index:
            return
        for encoded in commands:
            command = decode_command(encoded)
            if isinstance(command, TopologyCommand | AdministrativeCommand) and not is_inner(command):
                self._apply(command)
        self.index = index
        self._front.awaiting.fed()

    def _apply(self, command: Command) -> None:
        front = self._front
        vhost = front.state.vhosts.get(getattr(command, "vhost", ""))
        if vhost is not None:
            self._make_way(vhost, command)
        front.change(command)
        if vhost is not None:
            # The root decides which exchanges are deleted with their last binding.
            vhost.orphans.clear()
        if isinstance(command, PutVhost):
            front.arrange(front.state.vhosts[command.vhost])
        elif isinstance(command, DeleteUser):
            self._close_clients(lambda user, _: user == command.name, f"user '{command.name}' is deleted")

    def _make_way(self, vhost: "Vhost", command: Command) -> None:
        """Removes private objects that conflict with the command."""
        front = self._front
        trunk = front.trunks.get(vhost)
        if isinstance(command, DeclareQueue):
            private = vhost.queues.get(command.name)
            if private is not None and private.owner is not None:
                # The name was not held when the root changed, and another broker took it first.
                if trunk is not None:
                    trunk.claims.forget(command.name)
                tell_cancelled(delete_queue(front, private))
        elif isinstance(command, DeleteExchange) and trunk is not None:
            trunk.bindings.forget_exchange(command.name)
        elif isinstance(command, DeleteVhost):
            self._close_clients(lambda _, home: home is vhost, f"vhost '{vhost.name}' is deleted")
            if trunk is not None:
                del front.trunks[vhost]
                trunk.close()

    def _close_clients(self, concerns: "Callable[[str, Vhost], bool]", text: str) -> None:
        for client in list(self._front.clients):
            if concerns(client.user, client.vhost):
                self._front.faults.close_client(client, connection_forced(text))
        self._front.faults.finish()
