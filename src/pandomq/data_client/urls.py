"""Where the brokers are, as whom to log in, and how to check their certificates: all from the urls that clients have.

    amqp://user:password@host:5672/vhost                                 one broker
    amqp://user:password@host1:5672,host2:5672/vhost                     several, in one url
    amqp://user:password@host1/vhost,amqp://user:password@host2/vhost    or in several

With amqps the certificate is checked against the machine's authorities, or against `?cacertfile=`; `certfile` and
`keyfile` are what the client shows, with `auth_mechanism=external` instead of a password; `verify=verify_none` trusts
everybody: RabbitMQ's words. Nothing here shows a password when it is printed.
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
"""What urls of other clients may say, and what does not concern this one."""
_MECHANISMS: Final = ("plain", "amqplain", "external")
"""The first two are ways to say a password, and mean the same here."""


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


class Tls(NamedTuple):
    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """Raises OSError if the files are no good."""
        context = ssl.create_default_context(cafile=self.authorities)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class Login(NamedTuple):
    user: str
    password: str
    vhost: str
    by_certificate: bool = False
    """And neither by a name nor by a password."""

    def __repr__(self) -> str:
        return f"Login(user={self.user!r}, vhost={self.vhost!r})"


class Brokers(NamedTuple):
    """All that the urls say."""

    addresses: tuple[Address, ...]
    """Where AMQP is spoken."""
    login: Login
    tls: Tls | None


def parse_urls(urls: str) -> Brokers:
    """Raises BadUrl, which never names more than a host or a parameter."""
    starts = [match.start() for match in _URL.finditer(urls)]
    if not starts or urls[: starts[0]].strip(", "):
        raise BadUrl("a broker's url begins with amqp:// or amqps://")
    all_brokers = [
        _parse(urls[start:end].strip(", ")) for start, end in zip(starts, [*starts[1:], len(urls)], strict=True)
    ]
    first = all_brokers[0]
    for brokers in all_brokers[1:]:
        if brokers.login != first.login or brokers.tls != first.tls:
            raise BadUrl(
                "urls of one cluster differ in more than their hosts: user, password, vhost and TLS are shared"
            )
    addresses = dict.fromkeys(address for brokers in all_brokers for address in brokers.addresses)
    return Brokers(tuple(addresses), first.login, first.tls)


def _parse(url: str) -> Brokers:
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    place, slash, vhost = rest.partition("/")
    credentials, at, hosts = place.rpartition("@")
    user, colon, password = credentials.partition(":")
    given = _given(query)
    login = Login(
        unquote(user) if at and user else "guest",
        unquote(password) if colon else "guest",
        unquote(vhost) if slash and vhost else "/",
        _by_certificate(given, scheme),
    )
    try:
        addresses = tuple(Address.parse(text.strip() or "localhost", PORTS[scheme]) for text in hosts.split(","))
    except ValueError as error:
        raise BadUrl(f"a host in a broker's url cannot be read: {error}") from None
    tls = _tls(given)
    return Brokers(addresses, login, tls if scheme == "amqps" else None)


def _given(query: str) -> dict[str, str]:
    given = dict(parse_qsl(query, keep_blank_values=True))
    unknown = given.keys() - _PARAMETERS - _IGNORED
    if unknown:
        raise BadUrl(f"a broker's url has parameters that are not known: {', '.join(sorted(unknown))}")
    return given


def _by_certificate(given: dict[str, str], scheme: str) -> bool:
    mechanism = given.get("auth_mechanism", _MECHANISMS[0]).lower()
    if mechanism not in _MECHANISMS:
        raise BadUrl(f"auth_mechanism in a broker's url is {' or '.join(_MECHANISMS)}")
    external = mechanism == "external"
    if external and (scheme != "amqps" or "certfile" not in given):
        raise BadUrl("auth_mechanism=external in a broker's url needs amqps and a certfile")
    return external


def _tls(given: dict[str, str]) -> Tls:
    verify = given.get("verify", "verify_peer")
    if verify not in ("verify_peer", "verify_none"):
        raise BadUrl("verify in a broker's url is verify_peer or verify_none")
    return Tls(given.get("cacertfile"), given.get("certfile"), given.get("keyfile"), verify == "verify_peer")
