"""The `[cluster]` section: its conditions, and the settings that it makes."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import Final

from pandomq.cli.config.cluster_section import ClusterSection
from pandomq.cli.config.keys import OFF
from pandomq.cli.config.sections import Configuration
from pandomq.ids import NodeName
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.replica.limits import MEMBERS_MAX
from pandomq.replica.members.membership import Member
from pandomq.replica.settings import ReplicaSettings
from pandomq.runtime.listen import ListenAddress

NODE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
KEY_BYTES_MIN: Final = 16
"""A shorter key could be found by guessing."""
_ALL_INTERFACES: Final = ("0.0.0.0", "::")


def cluster_settings(configuration: Configuration, *, bootstrap: bool = False) -> ClusterSettings:
    """For a configuration in which `problems` finds none."""
    cluster, node = configuration.cluster, configuration.node
    if cluster.key is None:
        return ClusterSettings(replica=_replica_settings(cluster))
    members = tuple(parse_primary(text) for text in cluster.primaries)
    listen = node.tls.listen if node.listen == OFF else node.listen
    own_host = own_host_of(configuration)
    return ClusterSettings(
        primaries=members,
        key=cluster.key.encode(),
        advertise=cluster.advertise or from_elsewhere(listen, own_host),
        links="" if cluster.listen == OFF else from_elsewhere(cluster.listen, own_host),
        http=cluster.advertise_http or ("" if node.http == OFF else from_elsewhere(node.http, own_host)),
        bootstrap=bootstrap,
        join=tuple(str(ListenAddress.parse(text)) for text in cluster.join),
        access=cluster.access,
        root_wait_ms=cluster.root_wait_ms,
        observer=bool(cluster.join) and own_host is None,
        replica=_replica_settings(cluster),
    )


def own_host_of(configuration: Configuration) -> str | None:
    """The host by which the primaries know this broker, if it is one of them."""
    members = (parse_primary(text) for text in configuration.cluster.primaries)
    return next((ListenAddress.parse(one.address).host for one in members if one.name == configuration.node.name), None)


def _replica_settings(cluster: ClusterSection) -> ReplicaSettings:
    return ReplicaSettings(
        lease_ms=cluster.lease_ms,
        disk_stall_ms=cluster.disk_stall_ms,
        min_copies=cluster.min_copies,
        last_man_standing=cluster.last_man_standing,
    )


def from_elsewhere(listen: str, own_host: str | None) -> str:
    """A broker that listens on all interfaces is reached by the name that the primaries have for it, or the
    machine's."""
    address = ListenAddress.parse(listen)
    if address.host not in _ALL_INTERFACES:
        return listen
    return str(ListenAddress(own_host or socket.gethostname(), address.port))


def parse_primary(text: str) -> Member:
    """NAME=HOST:PORT. Raises ValueError with the reason."""
    name, equals, place = text.partition("=")
    if not equals or NODE_NAME.fullmatch(name) is None:
        raise ValueError(f"'{text}' is not a primary: expected NAME=HOST:PORT, for example n1=10.0.0.1:5672")
    return Member(NodeName(name), str(_dialed(place)))


def _dialed(text: str) -> ListenAddress:
    """The address of a broker. Raises ValueError."""
    address = ListenAddress.parse(text)
    if address.port == 0 or address.host in _ALL_INTERFACES:
        raise ValueError(
            f"'{text}' is not the address of a broker: expected a HOST that other machines can reach, and a PORT "
            "that is not 0"
        )
    return address


def problems(configuration: Configuration) -> Iterator[str]:
    cluster = configuration.cluster
    members: list[Member] = []
    for text in cluster.primaries:
        try:
            members.append(parse_primary(text))
        except ValueError as error:
            yield f"cluster.primaries: {error}"
    for key in ("join", "advertise", "advertise_http"):
        yield from _address_problems(key, getattr(cluster, key))
    yield from _member_problems(configuration, members)
    yield from _key_problems(cluster)
    if cluster.key is not None:
        yield from _place_problems(configuration)
    yield from _tls_problems(cluster)


def _address_problems(key: str, written: str | tuple[str, ...] | None) -> Iterator[str]:
    texts = written if isinstance(written, tuple) else () if written is None else (written,)
    for text in texts:
        try:
            _dialed(text)
        except ValueError as error:
            yield f"cluster.{key}: {error}"


def _member_problems(configuration: Configuration, members: list[Member]) -> Iterator[str]:
    cluster, name = configuration.cluster, configuration.node.name
    names: list[str] = [member.name for member in members]
    for kind, values in (("names", names), ("addresses", [member.address for member in members])):
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            yield f"cluster.primaries has {', '.join(twice)} twice: {kind} must be unique"
    if len(members) > MEMBERS_MAX:
        yield f"cluster.primaries has {len(members)} brokers: at most {MEMBERS_MAX} are possible"
    if names and name not in names and not cluster.join:
        yield (
            f"node.name is '{name}', which is not among cluster.primaries ({', '.join(names)}): add it there, or set "
            "cluster.join to join as a secondary"
        )
    if names and cluster.min_copies > max(len(names), ReplicaSettings().min_copies):
        yield f"cluster.min_copies is {cluster.min_copies}, but there are only {len(names)} primaries: lower it"


def _key_problems(cluster: ClusterSection) -> Iterator[str]:
    if cluster.key is None:
        for key in ("primaries", "join"):
            if getattr(cluster, key):
                yield f"cluster.{key} is set, but the brokers' shared key is not: set cluster.key_file"
    elif len(cluster.key.encode()) < KEY_BYTES_MIN:
        yield (
            f"cluster.key is shorter than {KEY_BYTES_MIN} bytes: create a longer one, for example with `openssl "
            "rand -hex 32`"
        )


def _place_problems(configuration: Configuration) -> Iterator[str]:
    """For a broker with links."""
    cluster, node = configuration.cluster, configuration.node
    if configuration.log.store == "memory":
        yield "log.store is memory, but a broker of a cluster must keep its votes on disk: set log.store to disk"
    if cluster.listen == OFF and node.listen == OFF:
        yield "cluster.listen and node.listen are both off, so that other brokers could not connect: set one of them"
    if cluster.listen == OFF and node.proxy_protocol:
        yield "node.proxy_protocol is true, but other brokers send no PROXY header: set cluster.listen for them"
    if cluster.advertise is None and cluster.primaries and node.listen.endswith(":0"):
        yield "node.listen has port 0, which clients cannot know: set a port, or set cluster.advertise"


def _tls_problems(cluster: ClusterSection) -> Iterator[str]:
    tls = cluster.tls
    missing = [name for name in ("certificate", "key", "authorities") if getattr(tls, name) is None]
    if len(missing) == len(type(tls).__struct_fields__):
        return
    for name in missing:
        yield f"[cluster.tls] is incomplete: set cluster.tls.{name}"
    if cluster.listen == OFF:
        yield "[cluster.tls] is set, but cluster.listen is off: links over TLS need an address of their own"
