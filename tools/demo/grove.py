"""The demo's brokers: three primaries, and a secondary that joins them later.

The demo starts them, watches them, kills one of them and starts it again, and ends all of them.
"""

from __future__ import annotations

import base64
import json
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pika

from tools.compare.clusters.disks import Disk
from tools.compare.clusters.member import PASSWORD, USER, Member
from tools.compare.clusters.pando import PandoCluster
from tools.compare.clusters.places import Place, places
from tools.demo.connecting import Broker
from tools.demo.words import EXCHANGE, QUEUES, STREAM

PRIMARIES = 3
LOOK_EVERY_S = 0.25
RETAINED_BYTES = 4 * 2**30
HTTP_TIMEOUT_S = 10.0


class DemoFailed(Exception):
    """Something other than the account failed; the text describes it."""


@dataclass(frozen=True)
class MemberRow:
    name: str
    address: str
    pid: str
    role: str
    in_sync: str
    log_index: str
    lag: str


@dataclass
class Sight:
    """The latest view of the cluster. The watcher writes it, and the display reads it."""

    root: str = ""
    term: int = 0
    rows: list[MemberRow] = field(default_factory=list)
    in_sync: frozenset[str] = frozenset()
    elections: list[dict[str, Any]] = field(default_factory=list)
    """The elections that any of the brokers knows."""


class AuditedCluster(PandoCluster):
    """A cluster whose brokers delete no part of their logs before it was audited."""

    def command(self, member: Member) -> tuple[Sequence[str], Mapping[str, str]]:
        command, variables = super().command(member)
        return command, {**variables, "PANDOMQ_LOG_RETAIN_FOR_AUDIT_BYTES": str(RETAINED_BYTES)}


class Grove:
    def __init__(self, cluster: PandoCluster, directory: Path) -> None:
        self.cluster = cluster
        self._directory = directory
        self.killed: set[str] = set()
        """Brokers that are known to be dead."""
        self.sight = Sight()
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="watcher", daemon=True)

    @property
    def everybody(self) -> list[Member]:
        return [*self.cluster.members, *self.cluster.secondaries]

    def primaries_from(self, number: int) -> list[Broker]:
        """Returns all primaries, beginning with a different one for each number."""
        first = number % PRIMARIES
        members = self.cluster.members
        return [_broker(member) for member in (*members[first:], *members[:first])]

    @property
    def secondary(self) -> Broker:
        return _broker(self.cluster.secondaries[0])

    @property
    def data(self) -> list[Path]:
        """The directories of the primaries' logs."""
        return [member.disk.directory / "data" for member in self.cluster.members]

    @property
    def url(self) -> str:
        """The URL of all primaries, as jobs take it."""
        hosts = ",".join(member.place.amqp for member in self.cluster.members)
        return f"amqp://{USER}:{PASSWORD}@{hosts}/%2F"

    def begin(self) -> None:
        try:
            self.cluster.start()
        except RuntimeError as error:
            raise DemoFailed(str(error)) from None
        self._watcher.start()

    def end(self) -> None:
        self._ended.set()
        if self._watcher.ident is not None:
            self._watcher.join()
        self.cluster.close()

    def declare(self) -> None:
        root = self.root()
        connection = pika.BlockingConnection(pika.URLParameters(f"{root.address}%2F"))
        channel = connection.channel()
        channel.exchange_declare(EXCHANGE, "direct", durable=True)
        for name in QUEUES:
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": "quorum"})
            channel.queue_bind(name, EXCHANGE, name)
        channel.queue_declare(STREAM, durable=True, arguments={"x-queue-type": "stream"})
        for name in QUEUES:
            channel.queue_bind(STREAM, EXCHANGE, name)
        connection.close()

    def trace(self) -> None:
        """Turns tracing on: from now on a stream records what happens to messages."""
        wish = json.dumps({"tracing": True, "trace_sample": 1.0}).encode()
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        address = f"http://{self.root().place.http}/api/vhosts/%2F"
        request = urllib.request.Request(address, wish, headers, method="PUT")
        try:
            urllib.request.urlopen(request, timeout=HTTP_TIMEOUT_S).close()
        except OSError as error:
            raise DemoFailed(f"tracing of the vhost failed: {error}") from None

    def root(self) -> Member:
        root = self.cluster.root()
        if root is None:
            raise DemoFailed("the cluster has no root")
        return root

    def kill(self, member: Member) -> None:
        self.killed.add(member.name)
        member.kill()

    def join(self) -> Member:
        """Its ports are chosen only now, since ports on which no process listens do not stay free."""
        name = f"n{PRIMARIES + 1}"
        secondary = Member(name, Place(), Disk(self._directory / name))
        self.cluster.join(secondary)
        return secondary

    def bring_back(self, member: Member) -> None:
        self.killed.discard(member.name)
        self.cluster.start_member(member)

    def insist_on_the_living(self) -> None:
        for member in self.everybody:
            if not member.alive and member.name not in self.killed:
                raise DemoFailed(f"{member.name} exited unexpectedly:\n{member.last_words()}")

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            self.sight = self._look()

    def _look(self) -> Sight:
        """Only the root knows the progress of the others, so its view counts."""
        views = {member.name: self.cluster.view(member) for member in self.cluster.members if member.alive}
        newest = max((view for view in views.values() if view), key=lambda view: view.get("term") or 0, default={})
        name = newest.get("root") or ""
        view = views.get(name) or newest
        rows = [self._row(member, view) for member in self.everybody]
        in_sync = {member["name"] for member in view.get("members", []) if member.get("in_sync")}
        elections = [election for heard in views.values() for election in heard.get("elections", [])]
        # The root may have been asked before it was elected.
        return Sight(name, newest.get("term") or 0, rows, frozenset(in_sync) if name else frozenset(), elections)

    def _row(self, member: Member, view: dict[str, Any]) -> MemberRow:
        if not member.alive:
            return MemberRow(member.name, member.place.amqp, "–", "dead", "", "", "")
        found: dict[str, Any] = next(
            (other for other in view.get("members", []) if other.get("name") == member.name), {}
        )
        return MemberRow(
            member.name,
            member.place.amqp,
            str(member.pid),
            found.get("role", "?"),
            "yes" if found.get("in_sync") else "no",
            f"{found.get('log_index') or 0:,}",
            f"{found.get('lag_bytes') or 0:,} B",
        )


def _broker(member: Member) -> Broker:
    return Broker(member.name, f"{member.address}%2F")


@contextmanager
def grove(directory: Path) -> Iterator[Grove]:
    """Starts three brokers on free ports of loopback."""
    with places(PRIMARIES, apart=False) as found:
        members = [
            Member(f"n{number}", place, Disk(directory / f"n{number}")) for number, place in enumerate(found, start=1)
        ]
        here = Grove(AuditedCluster(members), directory)
        try:
            here.begin()
            yield here
        finally:
            here.end()
