"""The `[cluster]` and `[cluster.tls]` sections: brokers that form a cluster. `cluster` turns them into settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta

from pandomq.cli.config.section import ADDRESS, PRIVATE, Section
from pandomq.cluster.proxy.limits import ROOT_WAIT_MS
from pandomq.replica.limits import MEMBERS_MAX
from pandomq.replica.settings import ReplicaSettings

_REPLICA: Final = ReplicaSettings()


class ClusterTls(Section, frozen=True):
    certificate: Annotated[
        Path | None,
        Meta(
            description=(
                "The file with the certificate that this broker presents to other brokers, and its chain, in PEM "
                "format."
            )
        ),
    ] = None
    key: Annotated[Path | None, Meta(description="The file with the certificate's private key, in PEM format.")] = None
    authorities: Annotated[
        Path | None,
        Meta(description="The file with the authorities that sign the brokers' certificates, in PEM format."),
    ] = None


class ClusterSection(Section, frozen=True):
    """`cluster` turns them into `ClusterSettings`."""

    key: Annotated[
        str | None,
        Meta(
            description=(
                "The secret that the brokers of a cluster share and prove to each other: at least 16 bytes. Prefer "
                "a file: `key_file`, `PANDOMQ_CLUSTER_KEY_FILE`. The file must not be readable by everybody on the "
                "machine."
            ),
            extra=PRIVATE,
        ),
    ] = None
    primaries: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "The brokers that vote, with the addresses on which the other brokers connect to them: "
                "`NAME=HOST:PORT`. All brokers need the same list when the cluster is founded. Later the list in "
                "the replicated log is authoritative."
            )
        ),
    ] = ()
    join: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "Addresses of brokers to join: `HOST:PORT`. A broker that is not among `primaries` joins as a "
                "secondary, which has no vote."
            ),
            extra={"option": "--join"},
        ),
    ] = ()
    listen: Annotated[
        str,
        Meta(
            description=(
                "A separate address for connections of other brokers: `HOST:PORT`. If it is set, the clients' port "
                "does not accept other brokers. `off`: other brokers connect to `[node] listen`."
            ),
            extra=ADDRESS,
        ),
    ] = "off"
    advertise: Annotated[
        str | None,
        Meta(
            description=(
                "The address of this broker for clients, as other brokers announce it. If it is not set, the "
                "address is `[node] listen`; if that means all interfaces, its host is the broker's host in "
                "`primaries`, or the machine's name."
            ),
            extra=ADDRESS,
        ),
    ] = None
    advertise_http: Annotated[
        str | None,
        Meta(
            description=(
                "The address of this broker's HTTP API, as other brokers announce it. If it is not set, the address "
                "is `[node] http`; if that means all interfaces, its host is the broker's host in `primaries`, or "
                "the machine's name."
            ),
            extra=ADDRESS,
        ),
    ] = None
    access: Annotated[
        Literal["proxy", "redirect"],
        Meta(
            description=(
                "The treatment of clients by a broker that is not the root. `proxy`: the broker serves them on "
                "behalf of the root. `redirect`: the broker refuses them and names the root. Use the same value on "
                "all brokers. See [operations](operations.md#choose-access)."
            )
        ),
    ] = "proxy"
    root_wait_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=600_000,
            description=(
                'With `access = "proxy"`: the time for which a client\'s request waits for a root. Afterwards the '
                "broker closes the client's connection with 320."
            ),
        ),
    ] = ROOT_WAIT_MS
    min_copies: Annotated[
        int,
        Meta(
            ge=1,
            le=MEMBERS_MAX,
            description=(
                "The number of disks on which a message must be before it is confirmed. The broker never uses fewer "
                "than half of the primaries, and never more than the number of primaries."
            ),
        ),
    ] = _REPLICA.min_copies
    last_man_standing: Annotated[
        bool,
        Meta(
            description=(
                "Whether the root confirms with fewer copies than `min_copies` while brokers are missing. Meanwhile "
                "it raises an alarm."
            )
        ),
    ] = _REPLICA.last_man_standing
    lease_ms: Annotated[
        int,
        Meta(
            ge=50,
            le=60_000,
            description=(
                "A root that receives from fewer than half of the primaries for longer than this steps down. "
                "Backups wait for the same time before they replace a silent root."
            ),
        ),
    ] = _REPLICA.lease_ms
    disk_stall_ms: Annotated[
        int, Meta(ge=1, le=600_000, description="A root whose disk does not respond for longer than this steps down.")
    ] = _REPLICA.disk_stall_ms
    tls: ClusterTls = ClusterTls()
