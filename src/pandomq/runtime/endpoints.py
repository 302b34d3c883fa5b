"""Where a broker listens."""

from __future__ import annotations

import msgspec

from pandomq.runtime.listen import Address
from pandomq.runtime.tls import TlsFiles


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    amqp: Address | None = None
    amqps: Address | None = None
    tls: TlsFiles | None = None
    """For amqps."""
    http: Address | None = None
    proxy_protocol: bool = False
    """Connections to `amqp` begin with a PROXY header; those to `amqps` never do."""
    cluster: Address | None = None
    """Where other brokers connect, and nobody else; None: they come to `amqp`."""
    data: Address | None = None
    data_tls: Address | None = None
    """The data port, without TLS and with it, for which the files are those of `amqps`."""
    data_proxy_protocol: bool = False
    """Connections to `data` begin with a PROXY header; those to `data_tls` never do."""
    data_may_move: bool = False
    """Nobody chose these addresses: where one is taken another port will do, since clients are told which."""
    cluster_tls: TlsFiles | None = None
    """For `cluster`, and for what is dialed: both ends show a certificate that the authorities have signed."""

    def __post_init__(self) -> None:
        if self.amqp is None and self.amqps is None:
            raise ValueError("a broker must listen somewhere: give an address for AMQP, with or without TLS")
        if self.amqps is not None and self.tls is None:
            raise ValueError("listening with TLS needs a certificate and its key")
        if self.data_tls is not None and self.tls is None:
            raise ValueError("a data port with TLS needs a certificate and its key")
        if self.cluster_tls is not None and (self.cluster is None or self.cluster_tls.authorities is None):
            raise ValueError("links by TLS need a listener of their own, and authorities to check certificates with")
