"""The objects that administrators change and see: users, vhosts, permissions, policies, limits.

Every change is a command: checked here, applied and logged like a declare, and reported as done once the log has it.
Nothing else changes that state. The caller checks the user's rights (tags, see `users`), and hashes a password first
(see `passwords`): no password enters a command.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pandomq.broker.administration.administration_checks import check
from pandomq.broker.administration.administration_views import UserView, user_view
from pandomq.broker.administration.passwords import SCRYPT, verify_password
from pandomq.broker.administration.users import ADMINISTRATOR
from pandomq.broker.log.commands import (
    AdministrativeCommand,
    DeleteUser,
    DeleteVhost,
    PutPermissions,
    PutTracing,
    PutUser,
    encode_command,
)
from pandomq.errors import ChannelFault, Fault, connection_forced

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.client import Client

OnDone = Callable[[Fault | None], None]

_NOBODY: Final = "scrypt$14$8$1$YSBzYWx0IG9mIG5vIG9uZQ==$vJtky7iV5kFZSErDaB3S9h8ut/o8iMszfEdByDfTLPs="
"""A request for a user that does not exist takes as long as for one that does."""


class Administration:
    __slots__ = ("_broker",)

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    # Changes.

    def submit(self, command: AdministrativeCommand, on_done: OnDone, now_ms: int) -> None:
        """Outside of a batch; the next one, which may be empty, writes it to the log.

        `on_done` is called at once with the fault of a bad command (404: there is no such thing; 406: anything else;
        the text names what was expected), or with None when the change is committed. It takes notes and returns.
        """
        broker = self._broker
        broker.now_ms = now_ms - broker.clock_ahead_ms
        try:
            check(broker.state, command)
            size_bytes = len(encode_command(command))
            broker.state_size.check(command, size_bytes, broker.limits.configuration_bytes_max, now_ms)
        except Fault as fault:
            on_done(fault)
            return
        if isinstance(command, DeleteVhost):
            vhost = broker.state.vhosts[command.vhost]
            self._close(lambda client: client.vhost is vhost, f"vhost '{command.vhost}' is deleted")
        elif isinstance(command, DeleteUser):
            self._close(lambda client: client.user == command.name, f"user '{command.name}' is deleted")
            broker.tallies.pop(command.name, None)
        broker.issue(command)
        if isinstance(command, PutTracing) and command.sample:
            self._declare_traces(command.vhost)
        broker.held.call_when_settled(lambda: on_done(None))

    def _declare_traces(self, vhost: str) -> None:
        """The stream is declared at once, so that it can be read at once. If there is no room for it, it is tried again
        when there is something to write."""
        with suppress(ChannelFault):
            self._broker.tracing.declare(self._broker.state.vhosts[vhost])

    def bootstrap(self, user: str, password_hash: str, now_ms: int) -> None:
        """Makes the first user, with all rights in the vhost "/"; does nothing if there ever was one."""
        broker = self._broker
        if broker.state.had_users:
            return
        broker.now_ms = now_ms - broker.clock_ahead_ms
        for command in (
            PutUser(user, password_hash, SCRYPT, (ADMINISTRATOR,)),
            PutPermissions("/", user, ".*", ".*", ".*"),
        ):
            check(broker.state, command)
            broker.issue(command)

    def _close(self, concerned: "Callable[[Client], bool]", reason: str) -> None:
        faults = self._broker.faults
        self._broker.commands_changed += 1
        for client in list(self._broker.clients):
            if concerned(client):
                faults.close_client(client, connection_forced(reason))
        faults.finish()

    # Authentication.

    def verify(self, name: str, password: bytes) -> bool:
        """The check is slow on purpose (see `passwords`), and as slow for a user that does not exist."""
        user = self._broker.state.users.get(name)
        if user is None or not user.password_hash:
            verify_password(password, _NOBODY, SCRYPT)
            return False
        return verify_password(password, user.password_hash, user.hashing)

    def user(self, name: str) -> UserView | None:
        user = self._broker.state.users.get(name)
        return None if user is None else user_view(user)
