"""TLS contexts from files, and the name in a client's certificate."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Literal, cast

import msgspec

ClientCertificates = Literal["ignore", "ask", "require"]


class TlsFiles(msgspec.Struct, frozen=True, kw_only=True):
    certificate: Path
    key: Path
    authorities: Path | None = None
    """Who signs clients' certificates."""
    client_certificates: ClientCertificates = "ignore"

    def __post_init__(self) -> None:
        if self.client_certificates != "ignore" and self.authorities is None:
            raise ValueError("client certificates are asked for, but no authorities are given to check them with")


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Reads the files anew. Raises OSError (also ssl.SSLError) naming the file at fault."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
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


def certificate_name(tls: ssl.SSLObject | None) -> str | None:
    """The common name in the certificate that the client proved to own; None if it showed none."""
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
        raise OSError(error.errno, f"{path} or its key is not what TLS needs: {error.reason or error}") from None
