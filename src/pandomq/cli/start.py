"""`pandomq start`: one broker in the foreground."""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import Annotated

import typer

from pandomq import __version__, kernel
from pandomq.cli.config import data_port
from pandomq.cli.config.cluster_section import ClusterTls
from pandomq.cli.config.keys import OFF
from pandomq.cli.config.load import Loaded
from pandomq.cli.config.sections import Configuration, NodeSection, TlsSection
from pandomq.cli.failures import RequestRejected, WrongUse
from pandomq.cli.shared_options import takes
from pandomq.cli.start_options import StartOptions, load_or_exit
from pandomq.journal.faults import StoreFault
from pandomq.node.clients.offers import announced_version
from pandomq.node.containment import LifeOver
from pandomq.node.settings import NodeSettings
from pandomq.runtime.endpoints import Endpoints
from pandomq.runtime.listen import ListenAddress, listening_sockets
from pandomq.runtime.logs import set_up_logs
from pandomq.runtime.tls import TlsFiles

log = logging.getLogger("pandomq")


@takes(StartOptions)
def start(
    options: StartOptions,
    bootstrap: Annotated[
        bool,
        typer.Option(
            "--bootstrap",
            help="Create a new cluster with the primaries of the configuration. Use it once, on one broker.",
        ),
    ] = False,
) -> None:
    """Start a broker in the foreground. ^C or SIGTERM stops it; SIGHUP reloads its configuration.

    All other settings are configuration keys: `pandomq config` shows every key and its value.
    """
    loaded = load_or_exit(options)
    if bootstrap and not loaded.configuration.cluster.primaries:
        raise WrongUse(
            "--bootstrap creates a cluster from cluster.primaries, which is empty: set it in the configuration"
        )
    # Imported here because it imports the whole broker, for which the other commands should not wait.
    from pandomq.admin.application import Application
    from pandomq.runtime.process import run

    node = loaded.configuration.node
    set_up_logs(node.log_level, node.log_format)
    _refuse_places_that_cannot_be_had(loaded.configuration)

    def read_settings() -> NodeSettings:
        anew = options.load()
        logging.getLogger().setLevel(anew.configuration.node.log_level.upper())
        return anew.node_settings()

    try:
        run(
            loaded.node_settings(bootstrap=bootstrap),
            _endpoints(loaded.configuration),
            node.data or Path(),
            lambda urls: _ready(loaded, urls),
            read_settings,
            Application,
            loaded.journal_settings(),
        )
    except StoreFault as fault:
        raise RequestRejected(f"broker {node.name} cannot use the store in {node.data}: {fault}") from None
    except LifeOver as fault:
        raise RequestRejected(
            f"broker {node.name} stops, because it has no log on disk to recover its state from: {fault}. Start it "
            "again, and report the traceback."
        ) from None
    except OSError as error:
        places = " and ".join(place for place in _places(loaded.configuration).values() if place != OFF)
        raise _cannot_start(node, places, error, "Check --data and [node.tls].") from None


def _places(configuration: Configuration) -> dict[str, str]:
    """Addresses to listen on, by their option or key."""
    node = configuration.node
    return {
        "--listen": node.listen,
        "[node.tls] listen": node.tls.listen,
        "--http": node.http,
        "[cluster] listen": configuration.cluster.listen,
        "[data] listen": configuration.data.listen or OFF,
        "[data] tls_listen": configuration.data.tls_listen or OFF,
    }


def _refuse_places_that_cannot_be_had(configuration: Configuration) -> None:
    """Tries each separately, so that the error names the one at fault."""
    node = configuration.node
    for option, place in _places(configuration).items():
        try:
            for sock in listening_sockets(ListenAddress.parse(place)) if place != OFF else ():
                sock.close()
        except OSError as error:
            raise _cannot_start(node, place, error, _advice(error, option)) from None


def _cannot_start(node: NodeSection, places: str, error: OSError, advice: str) -> RequestRejected:
    file = f" ({error.filename})" if error.filename else ""
    return RequestRejected(f"cannot start broker {node.name} on {places}: {error.strerror or error}{file}. {advice}")


def _endpoints(configuration: Configuration) -> Endpoints:
    node, cluster = configuration.node, configuration.cluster
    return Endpoints(
        amqp=_address(node.listen),
        amqps=_address(node.tls.listen),
        tls=_tls_files(node.tls),
        http=_address(node.http),
        proxy_protocol=node.proxy_protocol,
        cluster=_address(cluster.listen),
        cluster_tls=_cluster_tls_files(cluster.tls),
        data=data_port.data_address(configuration),
        data_tls=data_port.data_tls_address(configuration),
        data_proxy_protocol=data_port.behind_proxy(configuration),
        data_may_move=data_port.may_move(configuration),
    )


def _address(text: str) -> ListenAddress | None:
    return None if text == OFF else ListenAddress.parse(text)


def _tls_files(tls: TlsSection) -> TlsFiles | None:
    if tls.certificate is None or tls.key is None:
        return None
    return TlsFiles(
        certificate=tls.certificate,
        key=tls.key,
        authorities=tls.authorities,
        client_certificates=tls.client_certificates,
    )


def _cluster_tls_files(tls: ClusterTls) -> TlsFiles | None:
    if tls.certificate is None or tls.key is None:
        return None
    return TlsFiles(
        certificate=tls.certificate, key=tls.key, authorities=tls.authorities, client_certificates="require"
    )


def _ready(loaded: Loaded, urls: list[str]) -> None:
    if loaded.file is not None:
        log.info("read the configuration file %s", loaded.file.absolute())
    log.info(
        "PandoMQ %s ready on %s (kernel: %s), announced as %s %s; %s",
        __version__,
        ", ".join(urls),
        kernel.KIND,
        product := loaded.configuration.node.compat_product,
        announced_version(product),
        _where_state_is(loaded),
    )


def _where_state_is(loaded: Loaded) -> str:
    configuration = loaded.configuration
    if configuration.log.store == "memory":
        return "state is kept in memory only and is lost when this process ends"
    return f"state is stored in {configuration.node.data}, fsync: {configuration.log.fsync}"


def _advice(error: OSError, option: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Another program listens on this address: stop it, or choose another {option}."
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"This port needs privileges: choose a port above 1023 with {option}."
    return f"This machine does not have that address: choose another {option}."
