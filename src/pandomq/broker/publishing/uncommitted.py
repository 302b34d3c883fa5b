"""The memory of publishes that wait for a tx.commit: of one connection, of one user, of all.

It counts towards the memory watermark, and it is bounded: a publish beyond the bound of its connection or its user
closes its channel (406). If all together have too much, the user with the most loses the transactions of the connection
that has the most.
"""

from typing import TYPE_CHECKING, Final

from pandomq.errors import precondition_failed

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.client import Client

OVERHEAD_BYTES: Final = 256
"""Memory of a publish beyond its header and its body: the objects, and its destinations."""
_BASIC_PUBLISH: Final = (60, 40)


class Uncommitted:
    __slots__ = ("_broker", "_of_clients", "_of_users", "size_bytes")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._of_clients: dict[Client, int] = {}
        self._of_users: dict[str, int] = {}
        self.size_bytes = 0

    def add(self, client: "Client", size_bytes: int) -> None:
        """Raises ChannelFault (406) if that is too much; then nothing is added."""
        limits, user = self._broker.limits, client.user
        of_client = self._of_clients.get(client, 0) + size_bytes
        of_user = self._of_users.get(user, 0) + size_bytes
        if of_client > limits.transaction_per_connection_bytes_max > 0:
            raise precondition_failed(
                f"uncommitted transactions of this connection would take {of_client} bytes: "
                f"transaction_per_connection_bytes_max is {limits.transaction_per_connection_bytes_max}"
            )
        if of_user > limits.transaction_per_user_bytes_max > 0:
            raise precondition_failed(
                f"uncommitted transactions of user '{user}' would take {of_user} bytes: "
                f"transaction_per_user_bytes_max is {limits.transaction_per_user_bytes_max}"
            )
        if self.size_bytes + size_bytes > limits.transactions_bytes_max > 0:
            self._make_room(client, of_client, of_user, limits.transactions_bytes_max)
        self._of_clients[client] = of_client
        self._of_users[user] = of_user
        self.size_bytes += size_bytes

    def remove(self, client: "Client", size_bytes: int) -> None:
        if not size_bytes:
            return
        self.size_bytes -= size_bytes
        self._of_clients[client] -= size_bytes
        if not self._of_clients[client]:
            del self._of_clients[client]
        self._of_users[client.user] -= size_bytes
        if not self._of_users[client.user]:
            del self._of_users[client.user]

    def _make_room(self, client: "Client", of_client: int, of_user: int, bytes_max: int) -> None:
        fault = precondition_failed(f"uncommitted transactions of all connections take more than {bytes_max} bytes")
        held = {**self._of_clients, client: of_client}
        of_users = {**self._of_users, client.user: of_user}
        greediest = max(held, key=lambda one: (of_users[one.user], held[one]))
        if greediest is client:
            raise fault
        fault.at(*_BASIC_PUBLISH)
        for channel in list(greediest.channels.values()):
            if channel.transaction is not None and channel.transaction.size_bytes:
                channel.transaction.forget()
                self._broker.faults.close_channel(channel, fault)
