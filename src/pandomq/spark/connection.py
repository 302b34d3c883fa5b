"""The brokers, the login and the timeouts: the part of a source or sink that goes to every executor.

It has to include the password; its printed form shows hosts only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pandomq.data_client.client import DataClient
from pandomq.data_client.urls import parse_urls
from pandomq.spark.option_values import BadOption, OptionValues

OPTIONS: Final = ("url", "user", "password", "passwordFile", "timeout")
TIMEOUT_MS: Final = 300_000
"""How long a failover may take before a task fails; Spark then runs the task again."""
KEPT_MAX: Final = 4
"""Connections that a Python worker keeps open from one task to the next."""


@dataclass(frozen=True, repr=False)
class ConnectionOptions:
    urls: str
    timeout_ms: int = TIMEOUT_MS

    @classmethod
    def of(cls, values: OptionValues) -> ConnectionOptions:
        """Raises BadOption, or the client's BadUrl."""
        urls = values.needed("url", "it gives the addresses of the brokers, as amqp://user:password@host1,host2/vhost")
        user, password = values.raw("user"), _password(values)
        if (user is None) != (password is None):
            raise BadOption("options user and password (or passwordFile) must be given together")
        if user is not None and password is not None:
            if "@" in urls:
                raise BadOption("the URL contains a user already: remove option user, or the user in the URL")
            login = f"{quote(user, safe='')}:{quote(password, safe='')}@"
            urls = re.sub(r"(amqps?://)", lambda scheme: scheme[0] + login, urls)
        parse_urls(urls)
        return cls(urls, values.milliseconds("timeout", TIMEOUT_MS))

    def __repr__(self) -> str:
        return f"ConnectionOptions({', '.join(map(str, parse_urls(self.urls).addresses))})"

    def root_client(self) -> DataClient:
        """A client that sends every request to the root: for drivers, which have to know the current ends."""
        return DataClient(self.urls, timeout_s=self.timeout_ms / 1000, at_root=True)

    def client(self) -> DataClient:
        """A client that connects at its first request; each process begins with another broker."""
        return DataClient(self.urls, timeout_s=self.timeout_ms / 1000, turn=os.getpid())

    @contextmanager
    def kept_client(self) -> Iterator[DataClient]:
        """A client of this process that is kept for the next task, unless it failed."""
        place = (os.getpid(), self)
        client = _KEPT.pop(place, None) or self.client()
        try:
            yield client
        except BaseException:
            client.close()
            raise
        if len(_KEPT) >= KEPT_MAX:
            _KEPT.pop(next(iter(_KEPT))).close()
        _KEPT[place] = client


def _password(values: OptionValues) -> str | None:
    """Raises BadOption."""
    values.at_most_one("password", "passwordFile")
    path = values.text("passwordFile")
    if path is None:
        return values.raw("password")
    try:
        return Path(path).read_text().rstrip("\r\n")
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or "it is not a string"
        raise BadOption(f"option passwordFile: cannot read {path}: {why}") from None


_KEPT: Final[dict[tuple[int, ConnectionOptions], DataClient]] = {}
