"""Every key of `pandomq.toml`: its section, type, bounds, default, and purpose.

A key is one field here: the file, the environment, `pandomq config` and the settings of a node are derived from these
classes, and so are the tables in docs/configuration.md: a description is Markdown, with links as on that page. A name
ends in the unit of its numbers (`_bytes`, `_ms`, `_s`, before a `_max`); a text may contain its own unit. A limit of 0
means that there is none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta

from pandomq.broker.configured_limits import ConfiguredLimits
from pandomq.cli.config.cluster_section import ClusterSection
from pandomq.cli.config.section import ADDRESS, SECRET, Section
from pandomq.journal.limits import SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, JournalSettings
from pandomq.node.settings import NodeSettings

_DEFAULTS: Final = NodeSettings()
_JOURNAL: Final = JournalSettings()


class TlsSection(Section, frozen=True):
    listen: Annotated[
        str,
        Meta(
            description=(
                "The address on which the broker accepts AMQP clients over TLS: `HOST:PORT`, or `off`. Needs "
                "`certificate` and `key`."
            ),
            extra=ADDRESS,
        ),
    ] = "off"
    certificate: Annotated[
        Path | None,
        Meta(
            description=(
                "The file with the broker's certificate, followed by its intermediate certificates, in PEM format."
            )
        ),
    ] = None
    key: Annotated[Path | None, Meta(description="The file with the certificate's private key, in PEM format.")] = None
    authorities: Annotated[
        Path | None, Meta(description="The file with the authorities that sign clients' certificates, in PEM format.")
    ] = None
    client_certificates: Annotated[
        Literal["ignore", "ask", "require"],
        Meta(
            description=(
                "The treatment of clients' certificates. `ignore`: the broker requests none. `ask`: a client may "
                "present a certificate, which must then be valid. `require`: the broker refuses a client without a "
                "valid certificate. `ask` and `require` need `authorities`."
            )
        ),
    ] = "ignore"


class NodeSection(Section, frozen=True):
    name: Annotated[
        str,
        Meta(
            description="The broker's name, unique in its cluster: up to 64 letters, digits and `. _ @ -`.",
            extra={"option": "--name"},
        ),
    ] = _DEFAULTS.name
    data: Annotated[
        Path | None,
        Meta(
            description="The broker's data directory. If it is not set, the directory is `pandomq-data/NAME`.",
            extra={"option": "--data"},
        ),
    ] = None
    listen: Annotated[
        str,
        Meta(
            description="The address on which the broker accepts AMQP clients: `HOST:PORT`, or `off`.",
            extra={**ADDRESS, "option": "--listen"},
        ),
    ] = "127.0.0.1:5672"
    http: Annotated[
        str,
        Meta(
            description=(
                "The address of the [HTTP API](http-api.md), the metrics and the health checks: `HOST:PORT`, or `off`."
            ),
            extra={**ADDRESS, "option": "--http"},
        ),
    ] = "127.0.0.1:15672"
    proxy_protocol: Annotated[
        bool,
        Meta(
            description=(
                "Whether clients of `listen` connect through a proxy that sends a PROXY header with the client's "
                "address. If true, the broker refuses a connection without the header, or from a proxy that is not "
                "among `trusted_proxies`."
            )
        ),
    ] = False
    trusted_proxies: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "Addresses and networks of proxies whose statement of a client's address the broker accepts: PROXY "
                "headers over AMQP and on the data port, `X-Forwarded-For` over HTTP. See "
                "[security](security.md#behind-a-proxy)."
            )
        ),
    ] = _DEFAULTS.trusted_proxies
    compat_product: Annotated[
        str,
        Meta(
            description=(
                "The product name in the server properties. With `RabbitMQ`, the announced `version` is 3.13.7. "
                "With any other name, such as `PandoMQ`, it is the broker's own version. `implementation` and "
                "`pandomq_version` identify the broker in either case; see "
                "[clients](clients.md#the-name-that-clients-see)."
            )
        ),
    ] = _DEFAULTS.product
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(
            description="The least severe level that is logged: `debug`, `info`, `warning` or `error`.",
            extra={"option": "--log-level"},
        ),
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"],
        Meta(
            description=(
                "The format of log lines: `text`, or `json` for one JSON object per line. The log goes to standard "
                "error."
            ),
            extra={"option": "--log-format"},
        ),
    ] = "text"
    tls: TlsSection = TlsSection()


class HttpSection(Section, frozen=True):
    host_names: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "Additional host names that requests for changes may use. The `Host` of such a request must be one "
                "of these names, an IP address, `localhost`, the machine's name, or the host of `[node] http` or "
                "`[cluster] advertise_http`; otherwise the broker refuses it with 403. See "
                "[security](security.md#http-on-a-network)."
            )
        ),
    ] = _DEFAULTS.http_host_names


class LogSection(Section, frozen=True):
    store: Annotated[
        Literal["disk", "memory"],
        Meta(
            description=(
                "The place of the log: `disk`, or `memory`. With `memory` all messages and declarations are lost "
                "when the broker stops."
            ),
            extra={"option": "--memory"},
        ),
    ] = "disk"
    fsync: Annotated[
        Literal["always", "interval", "never"],
        Meta(
            description=(
                "The time at which the log is synced. `always`: before each confirm; a confirmed message is on the "
                "disk. `interval`, `never`: the operating system has a confirmed message; it survives the end of "
                "the process but not the failure of the machine. See [durability](durability.md)."
            )
        ),
    ] = "always"
    fsync_interval_ms: Annotated[
        int, Meta(ge=1, le=60_000, description='The time between two syncs with `fsync = "interval"`.')
    ] = _JOURNAL.fsync_interval_ms
    segment_bytes: Annotated[
        int,
        Meta(
            ge=SEGMENT_BYTES_MIN,
            le=SEGMENT_BYTES_MAX,
            description="The size at which the log begins a new segment file.",
        ),
    ] = _JOURNAL.segment_bytes
    snapshot_bytes: Annotated[
        int,
        Meta(
            ge=SEGMENT_BYTES_MIN,
            description=(
                "The broker takes a snapshot when the log has grown by this size, or by twice the size of the last "
                "snapshot if that is larger."
            ),
        ),
    ] = _JOURNAL.snapshot_log_bytes
    free_bytes_min: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                'While less disk space is free, the broker blocks publishers: `connection.blocked`, "low on disk". '
                "It also blocks them while the disk is far behind."
            ),
        ),
    ] = _JOURNAL.disk_free_bytes_min
    reserve_bytes: Annotated[
        int,
        Meta(ge=0, description="Disk space reserved for acks and for freeing space when the disk is full."),
    ] = _JOURNAL.reserve_bytes
    retain_for_audit_bytes: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The maximum size of retained log. Files of the log that would be deleted are renamed and kept for "
                "an [audit](pipelines.md#audit-violated-guarantees); above the limit the oldest files are deleted. "
                "0: nothing is retained. While less than `free_bytes_min` is free, the broker deletes all of them."
            ),
        ),
    ] = _JOURNAL.retain_bytes
    retain_for_audit_ms: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The maximum age of retained log, measured from the rename or from the start of the broker. 0: only "
                "the size limit applies."
            ),
        ),
    ] = _JOURNAL.retain_ms


class AuthSection(Section, frozen=True):
    default_user: Annotated[
        str,
        Meta(
            description=(
                "The administrator that a new broker creates when it first starts. A name other than `guest` needs "
                "a password of its own."
            )
        ),
    ] = _DEFAULTS.user
    default_password: Annotated[
        str,
        Meta(
            description=(
                "The password of `default_user`; `guest` if it is not set. Prefer a file: `default_password_file`, "
                "`PANDOMQ_AUTH_DEFAULT_PASSWORD_FILE`."
            ),
            extra=SECRET,
        ),
    ] = _DEFAULTS.password
    loopback_only_users: Annotated[
        tuple[str, ...], Meta(description="Users who may connect from this machine only.")
    ] = _DEFAULTS.loopback_only_users
    mechanisms: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "The SASL mechanisms offered to clients. `EXTERNAL` logs in the user that the client's certificate "
                "names; see [TLS](security.md#tls)."
            )
        ),
    ] = _DEFAULTS.mechanisms


class DataSection(Section, frozen=True):
    """`data_port` turns them into addresses."""

    listen: Annotated[
        str | None,
        Meta(
            description=(
                "The address of the data port: `HOST:PORT`, or `off`. If it is not set: the host of `[node] "
                "listen`, and port 5680 if that address has port 5672, else a free port."
            ),
            extra=ADDRESS,
        ),
    ] = None
    tls_listen: Annotated[
        str | None,
        Meta(
            description=(
                "The address of the data port over TLS, with the certificate of `[node.tls]`: `HOST:PORT`, or "
                "`off`. If it is not set: the host of `[node.tls] listen`, if there is one, and port 5679 if that "
                "address has port 5671, else a free port."
            ),
            extra=ADDRESS,
        ),
    ] = None
    advertise: Annotated[
        str | None,
        Meta(
            description=(
                "The address that clients use for `listen`, if it differs: `HOST:PORT`. If it is not set, clients "
                "use the host on which they found AMQP."
            ),
            extra=ADDRESS,
        ),
    ] = None
    advertise_tls: Annotated[
        str | None,
        Meta(
            description=(
                "The address that clients use for `tls_listen`, if it differs: `HOST:PORT`. If it is not set, "
                "clients use the host on which they found AMQP over TLS."
            ),
            extra=ADDRESS,
        ),
    ] = None
    proxy_protocol: Annotated[
        bool | None,
        Meta(
            description=(
                "Whether clients of the data port connect through a proxy that sends a PROXY header. If it is not "
                "set, `[node] proxy_protocol` applies."
            )
        ),
    ] = None


class LimitsSection(ConfiguredLimits, Section, frozen=True):
    """Its keys are the fields of `ConfiguredLimits`."""


class Configuration(Section, frozen=True):
    node: NodeSection
    http: HttpSection
    cluster: ClusterSection
    data: DataSection
    limits: LimitsSection
    log: LogSection
    auth: AuthSection
