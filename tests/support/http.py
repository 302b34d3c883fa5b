"""What clients over HTTP have in common."""

from __future__ import annotations

import ssl
from typing import Final

NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For `verify` of clients that speak plain HTTP: otherwise httpx reads all the world's certificates for each of them,
which takes 30 ms of a core, and tests ask brokers a hundred times a second how they are."""
