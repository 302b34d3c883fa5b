"""The addresses at which a broker listens."""

from __future__ import annotations

import msgspec

from pandomq.runtime.listen import ListenAddress
from pandomq.runtime.tls import TlsFiles


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    amqp: ListenAddress | None = None
    amqps: ListenAddress | None = None
    tls: TlsFiles | None = None
    """For amqps."""
    http: ListenAddress | None = None
    proxy_protocol: bool = False
    """Connections to `amqp` begin with a PROXY header; those to `amqps` never do."""
    cluster: ListenAddress | None = None
    """The address at which only other brokers connect; None: they connect to `amqp`."""
    data: ListenAddress | None = None
    data_tls: ListenAddress | None = None
    """The data port, without TLS and with it; the files are those of `amqps`."""
    data_proxy_protocol: bool = False
    """Connections to `data` begin with a PROXY header; those to `data_tls` never do."""
    data_may_move: bool = False
    """The operator did not choose these addresses: if one is in use another port will do, since clients are told the
    port."""
    cluster_tls: TlsFiles | None = None
    """For `cluster`, and for outgoing connections: both ends show a certificate that the authorities have signed."""

    def __post_init__(self) -> None:
        if self.amqp is None and self.amqps is None:
            raise ValueError("a broker must listen somewhere: give an address for AMQP, with or without TLS")
        if self.amqps is not None and self.tls is None:
            raise ValueError("listening with TLS needs a certificate and its key")
        if self.data_tls is not None and self.tls is None:
            raise ValueError("a data port with TLS needs a certificate and its key")
        if self.cluster_tls is not None and (self.cluster is None or self.cluster_tls.authorities is None):
            raise ValueError("links over TLS need a listener of their own, and authorities to verify certificates with")
