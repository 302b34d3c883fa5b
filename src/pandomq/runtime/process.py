"""One broker as a process: limits of the system, signals, start and end."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from random import SystemRandom
from typing import Any, Final, NamedTuple

import msgspec
import uvloop

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.journal import Journal
from pandomq.journal.limits import JournalSettings
from pandomq.node.clients.offers import AddressKind
from pandomq.node.node import Node
from pandomq.node.settings import NodeSettings
from pandomq.node.views.records import ListenerView
from pandomq.runtime import collector
from pandomq.runtime.allocator import keep_large_blocks_apart
from pandomq.runtime.clock import Clock
from pandomq.runtime.data.data_listener import DataListener
from pandomq.runtime.data.data_ports import DataPorts
from pandomq.runtime.endpoints import Endpoints
from pandomq.runtime.http import HttpServer
from pandomq.runtime.http_connections import connection_limits
from pandomq.runtime.listen import ListenAddress
from pandomq.runtime.own_key import write_own_key
from pandomq.runtime.pid_file import PID, pid_file
from pandomq.runtime.repeats import WINDOW_S, sum_up
from pandomq.runtime.server import Server

log = logging.getLogger("pandomq")

FILES_RESERVED: Final = 256
"""Open files other than clients' connections: listening sockets, logs, requests over HTTP."""


class StoppingTooLong(Exception):
    pass


class Store(NamedTuple):
    """The directory of the log, and its settings."""

    directory: Path
    settings: JournalSettings

    def journal(self, settings: NodeSettings) -> Journal:
        """A broker that is configured with peers begins without a cluster; a single one forms its own."""
        has_peers = bool(settings.cluster.primaries or settings.cluster.join)
        cluster_id = "" if has_peers else str(uuid.uuid4())
        return Journal(
            self.settings,
            node_name=NodeName(settings.name),
            new_cluster_id=ClusterId(cluster_id),
            new_store_id=uuid.uuid4().hex,
            boot_id=boot_id(),
            has_peers=has_peers,
        )


Wake = Callable[[], None]
MakeApplication = Callable[[Node, NodeSettings, Clock, Wake, Any], Any]
"""Makes the ASGI application around the node that answers over HTTP; it requests a step when it has work for the node.
The last argument is the application that it replaces, if any, which still answers the requests in progress."""


def run(
    settings: NodeSettings,
    endpoints: Endpoints,
    data: Path,
    on_ready: Callable[[list[str]], None],
    read_settings: Callable[[], NodeSettings] | None = None,
    make_application: MakeApplication | None = None,
    journal: JournalSettings | None = None,
) -> None:
    """Runs a broker until SIGTERM or SIGINT; SIGHUP reads certificates and settings again.

    Calls `on_ready` with the URLs for clients; `make_application` makes the application that answers at
    `endpoints.http`. Raises OSError if it cannot listen or write its directory, StoreFault if the store is or becomes
    unusable. Without `journal` its state is in memory.
    """
    keep_large_blocks_apart()
    data.mkdir(parents=True, exist_ok=True)
    with pid_file(data) as is_ours, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        settings = msgspec.structs.replace(settings, own_key=write_own_key(data) if is_ours else b"")
        store = None if journal is None else Store(data, journal)
        try:
            runner.run(_serve(settings, endpoints, on_ready, read_settings, make_application, store))
        except StoppingTooLong as too_long:
            log.error("%s and is terminated. Its log is complete.", too_long)
            if is_ours:
                (data / PID).unlink(missing_ok=True)
            # Threads may wait for a disk that never answers: the interpreter would wait for them.
            os._exit(1)


async def _serve(
    settings: NodeSettings,
    endpoints: Endpoints,
    on_ready: Callable[[list[str]], None],
    read_settings: Callable[[], NodeSettings] | None,
    make_application: MakeApplication | None,
    store: Store | None,
) -> None:
    _allow_many_sockets()
    settings = _within_system(settings)
    stop, again = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, again.set)
    clock = Clock()
    data_ports = DataPorts(endpoints)
    settings = data_ports.told_to(settings)

    def make_node() -> Node:
        nonlocal settings
        journal = None if store is None else store.journal(settings)
        node = Node(settings, SystemRandom(), clock.now_ms(), journal)
        # Start options do not apply again when the node restarts.
        cluster = msgspec.structs.replace(settings.cluster, bootstrap=False)
        settings = msgspec.structs.replace(settings, cluster=cluster)
        return node

    def use(changed: NodeSettings) -> None:
        nonlocal settings
        # Its identity and its cluster stay until a restart, also when the node restarts in the process.
        kept = {"name": settings.name, "cluster": settings.cluster, "data": settings.data, "own_key": settings.own_key}
        settings = msgspec.structs.replace(changed, **kept)
        server.node.change_settings(settings)
        if http is not None:
            http.use(make(server.node))
            http.limit(connection_limits(settings))

    application: Any = None

    def make(node: Node) -> Any:
        nonlocal application
        assert make_application is not None
        application = make_application(node, settings, clock, server.wake, application)
        return application

    http: HttpServer | None = None
    server = Server(make_node, clock, None if store is None else store.directory)
    if endpoints.cluster_tls is not None:
        server.dial_with(endpoints.cluster_tls)
    await _open(server, stop, settings.stop_ms_max)
    urls = await _listen(server, endpoints)
    data = data_ports.serve(server, clock, Path() if store is None else store.directory)
    if endpoints.http is not None and make_application is not None:
        http = HttpServer(make(server.node), connection_limits(settings))
        await _serve_http(server, http, endpoints.http, make, urls)
    collector.begin()
    on_ready(urls)
    servers: list[Server | HttpServer | DataListener] = [server, data] if http is None else [server, data, http]
    chores = [
        asyncio.create_task(_every(WINDOW_S, sum_up)),
        asyncio.create_task(_every(collector.FULL_EVERY_S, collector.look_at_all)),
    ]
    reloading = asyncio.create_task(_reload_when_asked(again, use, servers, read_settings))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((stopping, server.failure), return_when=asyncio.FIRST_COMPLETED)
    reloading.cancel()
    for chore in chores:
        chore.cancel()
    if server.failure.done():
        server.failure.result()
    await _stop(server, data, http, settings.stop_ms_max)


async def _open(server: Server, stop: asyncio.Event, stop_ms_max: int) -> None:
    """Raises StoppingTooLong: a signal may come while the disk does not answer."""
    opening, stopping = asyncio.ensure_future(server.open()), asyncio.ensure_future(stop.wait())
    await asyncio.wait((opening, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not opening.done():
        log.info("stopping: the broker's state is still being read")
        await asyncio.wait((opening,), timeout=stop_ms_max / 1000)
    if not opening.done():
        raise _too_long(stop_ms_max)
    opening.result()


def _too_long(stop_ms_max: int) -> StoppingTooLong:
    return StoppingTooLong(f"the broker did not stop within stop_ms_max ({stop_ms_max} ms)")


async def _stop(server: Server, data: DataListener, http: HttpServer | None, stop_ms_max: int) -> None:
    """Raises StoppingTooLong."""
    log.info("stopping: closing client connections")
    try:
        async with asyncio.timeout(stop_ms_max / 1000):
            await data.stop_listening()
            if http is not None:
                await http.shut_down()
            await server.shut_down()
            await data.shut_down()
    except TimeoutError:
        raise _too_long(stop_ms_max) from None


async def _serve_http(
    server: Server, http: HttpServer, address: ListenAddress, make: Callable[[Node], Any], urls: list[str]
) -> None:
    server.on_renewed = lambda node: http.use(make(node))
    for place in await http.listen(address):
        urls.append(f"http://{place}")
        server.node.views.listeners.append(ListenerView("http", *place))


async def _every(pause_s: float, chore: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(pause_s)
        chore()


async def _listen(server: Server, endpoints: Endpoints) -> list[str]:
    urls: list[str] = []
    place = AddressKind.BOTH if endpoints.cluster is None else AddressKind.CLIENTS
    if endpoints.amqp is not None:
        bound = await server.listen(endpoints.amqp, through_proxy=endpoints.proxy_protocol, place=place)
        urls += [f"amqp://{address}" for address in bound]
    if endpoints.amqps is not None:
        bound = await server.listen(endpoints.amqps, endpoints.tls, place=AddressKind.CLIENTS)
        urls += [f"amqps://{address}" for address in bound]
    if endpoints.cluster is not None:
        await server.listen(endpoints.cluster, endpoints.cluster_tls, place=AddressKind.BROKERS)
    return urls


async def _reload_when_asked(
    again: asyncio.Event,
    use: Callable[[NodeSettings], None],
    servers: Sequence[Server | HttpServer | DataListener],
    read_settings: Callable[[], NodeSettings] | None,
) -> None:
    while True:
        await again.wait()
        again.clear()
        try:
            # Everything is read before anything is changed: an error in one place changes nothing in another.
            renewals = [server.read_certificates() for server in servers]
            settings = None if read_settings is None else _within_system(read_settings())
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            log.error("certificates and settings were not reloaded, and remain as they were: %s", why)
            continue
        for renewal in renewals:
            renewal.use()
        if settings is not None:
            use(settings)
        log.info("certificates and settings were reloaded")


def _allow_many_sockets() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _within_system(settings: NodeSettings) -> NodeSettings:
    """Without a free file the system would reject a connection silently: the broker's own limit is lower."""
    files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections_max = files_max - min(FILES_RESERVED, files_max // 4)
    if settings.connections_max <= connections_max:
        return settings
    log.info(
        "the operating system allows %d open files, which limits the broker to %d connections",
        files_max,
        connections_max,
    )
    return msgspec.structs.replace(settings, connections_max=connections_max)


def boot_id() -> str:
    """The machine's boot id: a different one means that the machine lost what it had not written to its disks. Empty if
    unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def machine_memory_bytes() -> int:
    """The machine's memory, or the share of it that the control group allows."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        allowed = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(allowed)) if allowed.isdigit() else total
