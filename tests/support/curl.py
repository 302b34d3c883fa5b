"""Stands in for curl in documented commands where there is no curl, or only one that is too old for `--json`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import httpx

TIMEOUT_S = 60.0
JSON = {"content-type": "application/json", "accept": "application/json"}
CLIENT_ERROR = 400
FAILED = 22


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("-u", default=None)
    parser.add_argument("-X", default=None)
    parser.add_argument("--json", default=None)
    parser.add_argument("-o", default=None)
    parser.add_argument("-w", default="")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-f", action="store_true")
    parser.add_argument("url")
    asked = parser.parse_args()
    user, _, password = (asked.u or "").partition(":")
    answer = httpx.request(
        asked.X or ("GET" if asked.json is None else "POST"),
        asked.url,
        auth=(user, password) if asked.u else None,
        content=asked.json,
        headers=JSON if asked.json is not None else None,
        timeout=TIMEOUT_S,
    )
    if asked.f and answer.status_code >= CLIENT_ERROR:
        return FAILED
    if asked.o is None:
        sys.stdout.write(answer.text)
    else:
        Path(asked.o).write_bytes(answer.content)
    sys.stdout.write(asked.w.replace("%{http_code}", str(answer.status_code)).replace("\\n", "\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
