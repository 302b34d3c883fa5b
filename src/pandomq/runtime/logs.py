"""The broker's log on standard error: one event, one line, as text or as JSON; never a secret.

Names come from clients, so characters that could end a line or control a terminal are escaped: no client can forge an
entry. A URL's user and password are masked. Only a bug takes more lines: in text its stack follows on indented lines,
in JSON it is a field of the event. Events that happen many times a second are mostly counted instead (`repeats`).
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from typing import Final, Literal, TextIO

from pandomq.runtime.repeats import Repeats

LogFormat = Literal["text", "json"]

_CREDENTIALS: Final = re.compile(r"(?<=://)[^/\s@]*@")


def set_up_logs(level: str, form: LogFormat, stream: TextIO | None = None) -> None:
    """From here on every log line of this process goes to this stream in this form."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    handler.addFilter(Repeats(handler))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)


def printable(text: str) -> str:
    """The text on one line, without terminal control characters."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def without_credentials(text: str) -> str:
    return _CREDENTIALS.sub("***@", text)


class TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (logging's name)
        record.message = without_credentials(printable(record.message))
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802
        stack = super().formatException(ei)  # type: ignore[arg-type]
        return "\n".join(f"    {printable(line)}" for line in without_credentials(stack).splitlines())


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        event = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_credentials(record.getMessage()),
        }
        if record.exc_info:
            event["exception"] = without_credentials(self.formatException(record.exc_info))
        # ASCII only: line separators of other scripts and broken surrogates are escaped with the rest.
        return json.dumps(event)
