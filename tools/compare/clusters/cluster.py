"""A cluster of one system: its members, how they are started, and the leader.

Subclasses contain the differences between systems: the command, the check that the cluster is complete, the leader of a
queue.
"""

import contextlib
import time
from collections.abc import Mapping, Sequence

from pandomq.bench.client import wire
from pandomq.bench.client.session import CHANNEL, LoadSession
from pandomq.bench.client.url import BrokerUrl
from pandomq.bench.client.wire import BrokerRefused
from tools.compare.clusters import limits
from tools.compare.clusters.member import Member

QUORUM: Mapping[str, str] = {"x-queue-type": "quorum"}
"""The arguments of every measured queue: a replicated one, on either system."""


class Cluster:
    system: str

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)
        self.version = ""

    def command(self, member: Member) -> tuple[Sequence[str], Mapping[str, str]]:
        """The command, and the variables to set in its environment; an empty value removes one."""
        raise NotImplementedError

    def whole(self) -> bool:
        """All members take part, and none is behind."""
        raise NotImplementedError

    def leader(self, turn: int) -> Member:
        """The leader of a queue that is declared with it now; another one each turn if there is a choice."""
        raise NotImplementedError

    def wait_for(self, member: Member, queue: str) -> None:
        """Waits until a member that was gone has everything that is in the queue now, and everything else it needs to
        take part.

        Called in a thread of its own; it must be cheap, since a load is being measured. Raises RuntimeError if it takes
        too long.
        """
        raise NotImplementedError

    def start(self) -> None:
        for member in self.members:
            self.start_member(member)
        self.wait_until_whole()

    def start_member(self, member: Member) -> None:
        command, variables = self.command(member)
        member.launch(command, variables)

    def wait_until_whole(self) -> None:
        end = time.monotonic() + limits.READY_TIMEOUT_S
        while time.monotonic() < end:
            for member in self.members:
                if not member.alive:
                    raise RuntimeError(f"{self.system}: {member.name} exited:\n{member.last_words()}")
            if self.whole():
                return
            time.sleep(limits.POLL_S)
        words = "\n".join(f"{member.name}: {member.last_words()}" for member in self.members)
        raise RuntimeError(f"{self.system} is not complete after {limits.READY_TIMEOUT_S:.0f} s:\n{words}")

    def mend(self) -> None:
        """Undoes all faults of the members."""
        for member in self.members:
            member.disk.resume()
            member.thaw()
            member.place.heal()
        for member in self.members:
            if not member.alive:
                self.start_member(member)
        self.wait_until_whole()

    def declare(self, queue: str, turn: int) -> Member:
        """Declares the queue, and returns its leader."""
        leader = self.leader(turn)
        with LoadSession(leader.url) as session:
            self.version = session.server_version
            session.call(wire.queue_declare(CHANNEL, queue, QUORUM, durable=True), wire.QUEUE_DECLARE_OK)
        return leader

    def delete(self, queue: str) -> None:
        with LoadSession(self.leader(0).url) as session:
            session.wait_longer()
            session.call(wire.queue_delete(CHANNEL, queue), wire.QUEUE_DELETE_OK)

    def renew(self) -> None:
        """Starts again without any data."""
        self.close()
        for member in self.members:
            member.thaw()
            member.place.heal()
            member.place.clear()
            member.disk.wipe()
        self.start()

    def close(self) -> None:
        """Their data is not needed any more, so they are killed."""
        for member in self.members:
            with contextlib.suppress(RuntimeError):
                member.disk.resume()
            member.kill()


def serves(url: BrokerUrl) -> str:
    """The version of the broker that accepts a client there; empty if none does."""
    with contextlib.suppress(OSError, BrokerRefused), LoadSession(url, timeout_s=1.0) as session:
        return session.server_version
    return ""
