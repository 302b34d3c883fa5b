"""TLS contexts from files, and the name in a client's certificate."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec

ClientCertificates = Literal["ignore", "ask", "require"]

_HANDSHAKE_RECORD: Final = 22
"""The first octet of a TLS connection."""


class TlsFiles(msgspec.Struct, frozen=True, kw_only=True):
    certificate: Path
    key: Path
    authorities: Path | None = None
    """The authorities that sign clients' certificates."""
    client_certificates: ClientCertificates = "ignore"

    def __post_init__(self) -> None:
        if self.client_certificates != "ignore" and self.authorities is None:
            raise ValueError("client certificates are requested, but no authorities are set to verify them with")


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Reads the files anew. Raises OSError (also ssl.SSLError) naming the file at fault."""
    context = _ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _name_file(files.certificate, lambda: context.load_cert_chain(files.certificate, files.key))
    if files.authorities is not None:
        authorities = files.authorities
        _name_file(authorities, lambda: context.load_verify_locations(authorities))
    match files.client_certificates:
        case "ignore":
            context.verify_mode = ssl.CERT_NONE
        case "ask":
            context.verify_mode = ssl.CERT_OPTIONAL
        case "require":
            context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """For connections to other brokers: both ends show a certificate that the authorities have signed, and the dialed
    broker's is valid for its address. Raises OSError (also ssl.SSLError) naming the file at fault."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _name_file(files.certificate, lambda: context.load_cert_chain(files.certificate, files.key))
    if files.authorities is not None:
        authorities = files.authorities
        _name_file(authorities, lambda: context.load_verify_locations(authorities))
    return context


class _Conversation(ssl.SSLObject):
    """Rejects a client that does not use TLS at once; OpenSSL would wait for more of what cannot become a record."""

    unheard: ssl.MemoryBIO | None = None
    """Holds the client's first octets."""

    def do_handshake(self) -> None:
        if self.unheard is not None and self.unheard.pending:
            first = self.unheard.read()
            self.unheard.write(first)
            self.unheard = None
            if first[0] != _HANDSHAKE_RECORD:
                raise ssl.SSLError(ssl.SSLErrorNumber.SSL_ERROR_SSL, "the peer does not speak TLS")
        super().do_handshake()


class _ServerContext(ssl.SSLContext):
    sslobject_class = _Conversation

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **options: Any) -> ssl.SSLObject:
        conversation = super().wrap_bio(incoming, outgoing, *args, **options)
        assert isinstance(conversation, _Conversation)
        conversation.unheard = incoming
        return conversation


def certificate_name(tls: ssl.SSLObject | None) -> str | None:
    """The common name in the certificate that the client proved to own; None without a certificate."""
    certificate = tls.getpeercert() if tls is not None else None
    if not certificate:
        return None
    subject = cast(tuple[tuple[tuple[str, str], ...], ...], certificate.get("subject", ()))
    names = [value for part in subject for key, value in part if key == "commonName"]
    return names[-1] if names else None


def _name_file(path: Path, load: Callable[[], None]) -> None:
    try:
        load()
    except FileNotFoundError as error:
        raise OSError(error.errno, f"a TLS file is missing: {path} or its key") from None
    except ssl.SSLError as error:
        raise OSError(
            error.errno, f"{path} or its key is not a valid certificate or key: {error.reason or error}"
        ) from None
