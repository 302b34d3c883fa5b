"""The client of a broker's HTTP API for the commands: JSON in, JSON out, or an error that ends the command with its
code.

Each request has its own connection: commands are short, and `top` may pause for longer than a broker keeps one open.
Errors never show the password that the URL may contain.
"""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec
import typer

from pandomq.admin.access.key_login import authorization
from pandomq.cli.config.sources import read_secret
from pandomq.cli.failures import NoBroker, RequestRejected, WrongUse
from pandomq.cli.missing import UNNAMED, missing
from pandomq.runtime.logs import printable

URL_DEFAULT: Final = "http://guest:guest@127.0.0.1:15672"
URL_FILE_VARIABLE: Final = "PANDOMQ_URL_FILE"
PORTS: Final = {"http": 15672, "https": 15671}
TIMEOUT_S: Final = 30.0
RESPONSE_BYTES_MAX: Final = 512 * 1024 * 1024

Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="PANDOMQ_URL",
        help=(
            "Address of the broker's HTTP API, as http://user:password@host:15672. Without a password, the command "
            "prompts for it."
        ),
        show_default="guest at 127.0.0.1:15672",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the broker's response as JSON.")]


KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="Log in with this cluster key, or with the file own.key of a broker's data directory. No user is needed.",
        show_default=False,
    ),
]


class Api:
    def __init__(self, url: str, timeout_s: float | None = None, key: bytes = b"") -> None:
        """Raises ValueError if that is not the URL of an HTTP API. A key is used as the login, in place of the
        URL's."""
        self._key = key
        self._timeout_s = TIMEOUT_S if timeout_s is None else timeout_s
        parts = urlsplit(url)
        if parts.scheme not in PORTS or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("the URL is not that of an HTTP API: expected http://user:password@host:15672")
        self.user = unquote(parts.username) if parts.username is not None else "guest"
        if parts.username is None:
            self._password: str | None = "guest"
        else:
            self._password = None if parts.password is None else unquote(parts.password)
        self._tls = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or PORTS[parts.scheme]
        self._prefix = parts.path.rstrip("/")
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.address = f"{parts.scheme}://{host}:{self._port}{self._prefix}"
        """Without the login, so that it may be shown."""

    @classmethod
    def at(cls, url: str | None, key_file: Path | None = None) -> Api:
        """The API at that URL, or at the one in PANDOMQ_URL_FILE, or on this machine; a wrong URL is a usage error."""
        file = os.environ.get(URL_FILE_VARIABLE)
        try:
            key = b"" if key_file is None else read_secret(key_file).encode()
            api = cls(url or (read_secret(Path(file)) if file else URL_DEFAULT), key=key)
        except ValueError as error:
            raise WrongUse(str(error)) from None
        if api._password is None and not key:
            if not sys.stdin.isatty():
                raise WrongUse(
                    f"the URL has no password for user {api.user}, and there is no terminal to ask for it: write "
                    "the password in the URL"
                )
            api._password = str(typer.prompt(f"Password of {api.user}", hide_input=True, err=True))
        return api

    def fetch(self, *segments: str, **query: str) -> bytes:
        """The body of the answer, unchanged."""
        return self._ask("GET", segments, query=query)

    def get(self, *segments: str, **query: str) -> Any:
        return msgspec.json.decode(self.fetch(*segments, **query))

    def exists(self, *segments: str) -> bool:
        try:
            self._ask("GET", segments)
        except RequestRejected as refused:
            if refused.status == http.client.NOT_FOUND:
                return False
            raise
        return True

    def put(
        self, *segments: str, body: dict[str, Any], query: dict[str, str] | None = None, timeout_s: float | None = None
    ) -> None:
        self._ask("PUT", segments, query=query, body=_encoded(body), timeout_s=timeout_s)

    def post(self, *segments: str, body: bytes, timeout_s: float | None = None) -> bytes:
        return self._ask("POST", segments, body=body, timeout_s=timeout_s)

    def delete(
        self,
        *segments: str,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self._ask("DELETE", segments, query=query, headers=headers, timeout_s=timeout_s)

    def _ask(
        self,
        method: str,
        segments: tuple[str, ...],
        *,
        query: dict[str, str] | None = None,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> bytes:
        timeout_s = timeout_s or self._timeout_s
        target = f"{self._prefix}/api/{path_of(segments)}" + (f"?{urlencode(query)}" if query else "")
        connection = self._connection(timeout_s)
        try:
            connection.request(method, target, body, {**self._headers(method, target, body), **(headers or {})})
            with connection.getresponse() as response:
                content = response.read(RESPONSE_BYTES_MAX + 1)
        except (OSError, http.client.HTTPException) as error:
            raise NoBroker(self._silence(error, timeout_s)) from None
        finally:
            connection.close()
        if len(content) > RESPONSE_BYTES_MAX:
            raise RequestRejected(
                f"the response of {self.address} is larger than {RESPONSE_BYTES_MAX} bytes: select one vhost with "
                "--vhost, or page through the HTTP API",
                response.status,
            )
        return self._checked(response, content, segments)

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._tls:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)

    def _headers(self, method: str, target: str, body: bytes | None) -> dict[str, str]:
        if self._key:
            login = authorization(self._key, method, target.encode(), body or b"", int(time.time()))
        else:
            words = f"{self.user}:{self._password}".encode("utf-8", "surrogateescape")
            login = f"Basic {base64.b64encode(words).decode()}"
        headers = {"Authorization": login, "Connection": "close"}
        return headers if body is None else {**headers, "Content-Type": "application/json"}

    def _checked(self, response: http.client.HTTPResponse, content: bytes, segments: tuple[str, ...]) -> bytes:
        is_json = "json" in (response.headers.get("Content-Type") or "")
        if response.status < 300 and (is_json or not content):
            return content
        reason = _reason(content) if is_json else None
        if reason is None and not content:
            reason = f"{response.status} {response.reason}"
        if response.status == http.client.UNAUTHORIZED:
            if self._key:
                raise RequestRejected(
                    f"{self.address} refused the key: {reason or 'login failed'}. Give the cluster's key, or own.key "
                    "of this broker's data directory, with --key-file.",
                    401,
                )
            advice = "Give other credentials with --url http://user:password@host:15672 or PANDOMQ_URL."
            raise RequestRejected(
                f"{self.address} refused user '{self.user}': {reason or 'login failed'}. {advice}", 401
            )
        if reason is None:
            raise NoBroker(
                f"the server at {self.address} does not serve a broker's HTTP API ({response.status} "
                f"{response.reason}). {_ADVICE}"
            )
        if reason in UNNAMED:
            reason = missing(segments)
        raise RequestRejected(reason, response.status)

    def _silence(self, error: Exception, timeout_s: float) -> str:
        match error:
            case TimeoutError():
                why = f"no response for {timeout_s:.0f} s"
            case http.client.HTTPException():
                why = "the response is not HTTP; is it the AMQP port?"
            case ssl.SSLError():
                why = error.reason or str(error)
            case socket.gaierror():
                why = str(error.strerror)
            case _:
                why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return f"no broker responds at {self.address} ({why}). {_ADVICE}"


_ADVICE: Final = (
    "Start one with `pandomq start`, or name another by --url http://user:password@host:15672 or PANDOMQ_URL."
)


def path_of(segments: tuple[str, ...]) -> str:
    """Every name is one segment, whatever it contains; bytes that are not UTF-8 are sent as they were typed."""
    return "/".join(quote(segment.encode("utf-8", "surrogateescape"), safe="") for segment in segments)


def _encoded(body: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError as error:
        # The value is not shown: it may be a password.
        wrong = [name for name, value in body.items() if error.object in (value, name)]
        raise WrongUse(f"{wrong[0] if wrong else 'an argument'} is not valid UTF-8") from None


def _reason(content: bytes) -> str | None:
    """The reason in the broker's error, on one line."""
    try:
        answer = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return None
    if not isinstance(answer, dict):
        return None
    reason = answer.get("reason") or answer.get("error")
    text = reason if isinstance(reason, str) else msgspec.json.encode(reason).decode()
    return printable(" ".join(text.split()))
