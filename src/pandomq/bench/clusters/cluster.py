"""A cluster of one system: its members, how they are started, and who leads.

What differs between systems is in the subclasses: what to run, when the cluster is whole, who leads a queue.
"""

import contextlib
import time
from collections.abc import Mapping, Sequence

from pandomq.bench import wire
from pandomq.bench.clusters import limits
from pandomq.bench.clusters.member import Member
from pandomq.bench.session import CHANNEL, Session
from pandomq.bench.url import BrokerUrl
from pandomq.bench.wire import BrokerRefused

QUORUM: Mapping[str, str] = {"x-queue-type": "quorum"}
"""The arguments of every queue that is measured: a replicated one, on either system."""


class Cluster:
    system: str

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)
        self.version = ""

    def command(self, member: Member) -> tuple[Sequence[str], Mapping[str, str]]:
        """What to run, and the variables to set in its environment; an empty value takes one out."""
        raise NotImplementedError

    def whole(self) -> bool:
        """All members take part, and none is behind."""
        raise NotImplementedError

    def leader(self, turn: int) -> Member:
        """Whoever will lead a queue that is declared with it now; where there is a choice, another one each turn."""
        raise NotImplementedError

    def wait_for(self, member: Member, queue: str) -> None:
        """Until a member that was gone has all that is in the queue now, and all else it needs to take part.

        Called in a thread of its own, and cheap: a load is being measured. Raises RuntimeError if it takes too long."""
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
                    raise RuntimeError(f"{self.system}: {member.name} ended:\n{member.last_words()}")
            if self.whole():
                return
            time.sleep(limits.POLL_S)
        words = "\n".join(f"{member.name}: {member.last_words()}" for member in self.members)
        raise RuntimeError(f"{self.system} is not whole after {limits.READY_TIMEOUT_S:.0f} s:\n{words}")

    def mend(self) -> None:
        """Undoes all that was done to the members."""
        for member in self.members:
            member.disk.resume()
            member.thaw()
            member.place.heal()
        for member in self.members:
            if not member.alive:
                self.start_member(member)
        self.wait_until_whole()

    def declare(self, queue: str, turn: int) -> Member:
        """Makes the queue, and says who leads it."""
        leader = self.leader(turn)
        with Session(leader.url) as session:
            self.version = session.server_version
            session.call(wire.queue_declare(CHANNEL, queue, QUORUM, durable=True), wire.QUEUE_DECLARE_OK)
        return leader

    def delete(self, queue: str) -> None:
        with Session(self.leader(0).url) as session:
            session.wait_longer()
            session.call(wire.queue_delete(CHANNEL, queue), wire.QUEUE_DELETE_OK)

    def renew(self) -> None:
        """Begins anew, without a past."""
        self.close()
        for member in self.members:
            member.thaw()
            member.place.heal()
            member.place.clear()
            member.disk.wipe()
        self.start()

    def close(self) -> None:
        """Nothing of what they hold is wanted any more, so they are not asked to end in order."""
        for member in self.members:
            with contextlib.suppress(RuntimeError):
                member.disk.resume()
            member.kill()


def serves(url: BrokerUrl) -> str:
    """The version of whoever lets a client in there; empty if nobody does."""
    with contextlib.suppress(OSError, BrokerRefused), Session(url, timeout_s=1.0) as session:
        return session.server_version
    return ""
