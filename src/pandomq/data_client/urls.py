"""The brokers' addresses, the login, and the check of certificates, from the urls that clients have.

    amqp://user:password@host:5672/vhost                                 one broker
    amqp://user:password@host1:5672,host2:5672/vhost                     several, in one url
    amqp://user:password@host1/vhost,amqp://user:password@host2/vhost    or in several

With amqps the certificate is checked against the machine's authorities, or against `?cacertfile=`; `certfile` and
`keyfile` are the client's certificate, with `auth_mechanism=external` instead of a password; `verify=verify_none`
trusts every server, as in RabbitMQ's urls. Nothing here shows a password when it is printed.
"""

from __future__ import annotations

import re
import ssl
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from pandomq.data_client.failures import BadUrl

PORTS: Final = {"amqp": 5672, "amqps": 5671}
_URL: Final = re.compile(r"(amqps?)://", re.ASCII)
_PARAMETERS: Final = frozenset({"auth_mechanism", "cacertfile", "certfile", "keyfile", "verify"})
_IGNORED: Final = frozenset({"heartbeat", "connection_timeout", "channel_max", "frame_max"})
"""Parameters in urls of other clients that do not concern this one."""
_MECHANISMS: Final = ("plain", "amqplain", "external")
"""The first two are ways to send a password, and mean the same here."""


SHOWN_CHARACTERS_MAX: Final = 80
"""Longer texts are cut off in an error."""


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, default_port: int = 0) -> Address:
        """HOST:PORT, [::1]:PORT, or HOST alone if there is a default. Raises ValueError."""
        if text.startswith("["):
            host, _, rest = text[1:].partition("]")
            port = rest.removeprefix(":")
        else:
            host, _, port = text.partition(":")
        if not port and default_port:
            return cls(unquote(host), default_port)
        if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"'{port}' is not a port")
        return cls(unquote(host), int(port))


class TlsOptions(NamedTuple):
    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """Raises OSError if the files are unusable."""
        context = ssl.create_default_context(cafile=self.authorities)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class UrlLogin(NamedTuple):
    user: str
    password: str
    vhost: str
    by_certificate: bool = False
    """The login is by certificate, without name and password."""

    def __repr__(self) -> str:
        return f"UrlLogin(user={self.user!r}, vhost={self.vhost!r})"


class Brokers(NamedTuple):
    """The contents of the urls."""

    addresses: tuple[Address, ...]
    """AMQP addresses."""
    login: UrlLogin
    tls: TlsOptions | None


def parse_urls(urls: str) -> Brokers:
    """Raises BadUrl, whose text contains at most a host or a parameter."""
    starts = [match.start() for match in _URL.finditer(urls)]
    if not starts or urls[: starts[0]].strip(", "):
        raise BadUrl(f"a broker's URL begins with amqp:// or amqps://, not with '{_without_login(urls)}'")
    all_brokers = [
        _parse(urls[start:end].strip(", ")) for start, end in zip(starts, [*starts[1:], len(urls)], strict=True)
    ]
    first = all_brokers[0]
    for brokers in all_brokers[1:]:
        if brokers.login != first.login or brokers.tls != first.tls:
            raise BadUrl(
                "URLs of one cluster may differ only in their hosts: user, password, vhost and TLS must be the same"
            )
    addresses = dict.fromkeys(address for brokers in all_brokers for address in brokers.addresses)
    return Brokers(tuple(addresses), first.login, first.tls)


def _without_login(text: str) -> str:
    """The beginning of a text that is no URL of a broker: its scheme and host, and nothing that may be a password."""
    scheme = re.match(r"[a-z][a-z0-9+.-]*://", text.strip(), re.IGNORECASE)
    place = text.strip()[0 if scheme is None else scheme.end() :].partition("?")[0]
    return f"{'' if scheme is None else scheme[0]}{place.rpartition('@')[2]}"[:SHOWN_CHARACTERS_MAX]


def _parse(url: str) -> Brokers:
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    place, slash, vhost = rest.partition("/")
    credentials, at, hosts = place.rpartition("@")
    user, colon, password = credentials.partition(":")
    given = _given(query)
    login = UrlLogin(
        unquote(user) if at and user else "guest",
        unquote(password) if colon else "guest",
        unquote(vhost) if slash and vhost else "/",
        _by_certificate(given, scheme),
    )
    try:
        addresses = tuple(Address.parse(text.strip() or "localhost", PORTS[scheme]) for text in hosts.split(","))
    except ValueError as error:
        raise BadUrl(f"the host in a broker's URL is malformed: {error}") from None
    tls = _tls(given)
    return Brokers(addresses, login, tls if scheme == "amqps" else None)


def _given(query: str) -> dict[str, str]:
    given = dict(parse_qsl(query, keep_blank_values=True))
    unknown = given.keys() - _PARAMETERS - _IGNORED
    if unknown:
        raise BadUrl(f"a broker's URL has unknown parameters: {', '.join(sorted(unknown))}")
    return given


def _by_certificate(given: dict[str, str], scheme: str) -> bool:
    mechanism = given.get("auth_mechanism", _MECHANISMS[0]).lower()
    if mechanism not in _MECHANISMS:
        raise BadUrl(f"auth_mechanism in a broker's URL must be {' or '.join(_MECHANISMS)}, not '{mechanism}'")
    external = mechanism == "external"
    if external and (scheme != "amqps" or "certfile" not in given):
        raise BadUrl("auth_mechanism=external in a broker's URL needs amqps and a certfile")
    return external


def _tls(given: dict[str, str]) -> TlsOptions:
    verify = given.get("verify", "verify_peer")
    if verify not in ("verify_peer", "verify_none"):
        raise BadUrl(f"verify in a broker's URL must be verify_peer or verify_none, not '{verify}'")
    return TlsOptions(given.get("cacertfile"), given.get("certfile"), given.get("keyfile"), verify == "verify_peer")
