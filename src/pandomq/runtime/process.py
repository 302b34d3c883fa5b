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
from pandomq.node.node import Node
from pandomq.node.offers import Place
from pandomq.node.settings import NodeSettings
from pandomq.node.view_records import ListenerView
from pandomq.runtime import collector
from pandomq.runtime.allocator import keep_large_blocks_apart
from pandomq.runtime.clock import Clock
from pandomq.runtime.data_listener import DataListener
from pandomq.runtime.data_ports import DataPorts
from pandomq.runtime.endpoints import Endpoints
from pandomq.runtime.http import HttpServer
from pandomq.runtime.repeats import WINDOW_S, sum_up
from pandomq.runtime.server import Server

log = logging.getLogger("pandomq")

FILES_RESERVED: Final = 256
"""Open files that are not clients' connections: listening sockets, logs, requests over HTTP."""


class Store(NamedTuple):
    """Where the log is, and how it is kept."""

    directory: Path
    settings: JournalSettings

    def journal(self, settings: NodeSettings) -> Journal:
        """A broker that is configured to have peers begins without a cluster; one alone founds its own."""
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
MakeApplication = Callable[[Node, NodeSettings, Clock, Wake], Any]
"""What answers over HTTP: an ASGI application around the node, which asks for a step when it has work for it."""


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

    `on_ready` is told the URLs that clients may use; `make_application` makes what answers at `endpoints.http`. Raises
    OSError if it cannot listen or write its directory, StoreFault if it cannot use what is there, or at any time later.
    Without `journal` its state is in memory.
    """
    keep_large_blocks_apart()
    data.mkdir(parents=True, exist_ok=True)
    pid_file = data / "pid"
    pid_file.write_text(f"{os.getpid()}\n")
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            store = None if journal is None else Store(data, journal)
            runner.run(_serve(settings, endpoints, on_ready, read_settings, make_application, store))
    finally:
        pid_file.unlink(missing_ok=True)


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
        # What a person asked for at the start is not asked for again when the node begins again.
        cluster = msgspec.structs.replace(settings.cluster, bootstrap=False)
        settings = msgspec.structs.replace(settings, cluster=cluster)
        return node

    def use(changed: NodeSettings) -> None:
        nonlocal settings
        # Who it is and whom it belongs to stay until a restart, also for a node that begins again.
        kept = {"name": settings.name, "cluster": settings.cluster, "data": settings.data}
        settings = msgspec.structs.replace(changed, **kept)
        server.node.change_settings(settings)

    server = Server(make_node, clock, None if store is None else store.directory)
    if endpoints.cluster_tls is not None:
        server.dial_with(endpoints.cluster_tls)
    await server.open()
    urls = await _listen(server, endpoints)
    data = data_ports.serve(server, clock, Path() if store is None else store.directory)
    http: HttpServer | None = None
    if endpoints.http is not None and make_application is not None:
        made, answering = make_application, HttpServer(make_application(server.node, settings, clock, server.wake))
        server.on_renewed = lambda node: answering.use(made(node, settings, clock, server.wake))
        http = answering
        for address in await http.listen(endpoints.http):
            urls.append(f"http://{address}")
            server.node.views.listeners.append(ListenerView("http", *address))
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
    log.info("stopping: telling clients")
    await data.stop_listening()
    if http is not None:
        await http.shut_down()
    await server.shut_down()
    await data.shut_down()


async def _every(pause_s: float, chore: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(pause_s)
        chore()


async def _listen(server: Server, endpoints: Endpoints) -> list[str]:
    urls: list[str] = []
    place = Place.BOTH if endpoints.cluster is None else Place.CLIENTS
    if endpoints.amqp is not None:
        bound = await server.listen(endpoints.amqp, through_proxy=endpoints.proxy_protocol, place=place)
        urls += [f"amqp://{address}" for address in bound]
    if endpoints.amqps is not None:
        bound = await server.listen(endpoints.amqps, endpoints.tls, place=Place.CLIENTS)
        urls += [f"amqps://{address}" for address in bound]
    if endpoints.cluster is not None:
        await server.listen(endpoints.cluster, endpoints.cluster_tls, place=Place.BROKERS)
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
            # All is read before anything is changed: what is wrong in one place changes nothing in another.
            renewals = [server.read_certificates() for server in servers]
            settings = None if read_settings is None else _within_system(read_settings())
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            log.error("the certificates and the settings stay as they were: %s", why)
            continue
        for renewal in renewals:
            renewal.use()
        if settings is not None:
            use(settings)
        log.info("read certificates and settings again")


def _allow_many_sockets() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _within_system(settings: NodeSettings) -> NodeSettings:
    """A connection for which the system has no file would be hung up on without a word: ours ends earlier."""
    files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections_max = files_max - min(FILES_RESERVED, files_max // 4)
    if settings.connections_max <= connections_max:
        return settings
    log.info("the system allows %d open files, and so no more than %d connections", files_max, connections_max)
    return msgspec.structs.replace(settings, connections_max=connections_max)


def boot_id() -> str:
    """Of the machine: another one after it lost what it had not written to its disks. Empty if nobody knows."""
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
