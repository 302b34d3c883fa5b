"""The parts of an AMQP URL."""

from typing import NamedTuple
from urllib.parse import unquote, urlsplit


class BrokerUrl(NamedTuple):
    host: str
    port: int
    user: str
    password: str
    vhost: str

    @property
    def without_password(self) -> str:
        return f"amqp://{self.user}@{self.host}:{self.port}/{self.vhost if self.vhost != '/' else '%2F'}"


def no_connection(url: BrokerUrl, why: str) -> str:
    return f"cannot connect to {url.host}:{url.port}: {why}. Start a broker there, or name another one with --url"


def parse_url(text: str) -> BrokerUrl:
    """Parses amqp://user:password@host:port/vhost; missing parts have the defaults of a new broker."""
    parts = urlsplit(text)
    if parts.scheme != "amqp":
        raise ValueError(f"{parts.scheme or text} is not supported: give an amqp:// URL (without TLS)")
    return BrokerUrl(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 5672,
        user=unquote(parts.username or "guest"),
        password=unquote(parts.password or "guest"),
        vhost=unquote(parts.path[1:]) or "/",
    )
