"""Shared parts of HTTP clients."""

from __future__ import annotations

import ssl
from typing import Final

NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""The value of `verify` for clients of plain HTTP: otherwise httpx reads all CA certificates for each client, which
takes 30 ms of a core, and tests poll brokers a hundred times per second."""
