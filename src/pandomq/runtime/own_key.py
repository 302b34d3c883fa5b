"""The file `own.key` in a broker's directory: a key that is valid while the process runs.

A person who may read the file, and thus all of the broker's data, may log in with it over HTTP to change users
(`admin.access.key_login`): this restores access when there is no administrator.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

OWN_KEY: Final = "own.key"
KEY_BYTES: Final = 32


def write_own_key(directory: Path) -> bytes:
    """Writes a new key, which replaces that of the last start. Raises OSError."""
    key = secrets.token_hex(KEY_BYTES).encode()
    path, draft = directory / OWN_KEY, directory / f"{OWN_KEY}.new"
    draft.unlink(missing_ok=True)
    fd = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, key + b"\n")
    finally:
        os.close(fd)
    draft.replace(path)
    return key
