"""Three brokers of ours, each started with a configuration file for `pandomq start`."""

import base64
import contextlib
import json
import secrets
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.compare.clusters import limits
from tools.compare.clusters.cluster import Cluster, serves
from tools.compare.clusters.member import PASSWORD, USER, Member
from tools.compare.peers.ledger import FAST

_HTTP_TIMEOUT_S = 1.0
_LOOK_EVERY_S = 0.25
_AUTHORIZATION = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


class PandoCluster(Cluster):
    system = FAST

    def __init__(self, members: Sequence[Member]) -> None:
        super().__init__(members)
        self.secondaries: list[Member] = []
        """Those that have joined; they end with the others."""
        self._key = secrets.token_hex(32)

    def command(self, member: Member) -> tuple[Sequence[str], Mapping[str, str]]:
        directory = member.disk.directory
        key_file, configuration = directory / "cluster.key", directory / "pandomq.toml"
        if not key_file.exists():
            key_file.touch(mode=0o600)
            key_file.write_text(self._key + "\n")
            configuration.write_text(self._configuration(member, key_file))
        program = str(Path(sys.executable).with_name("pandomq"))
        return [program, "start", "--config", str(configuration)], {
            "PANDOMQ_PLAIN": "",
            "PANDOMQ_AUTH_DEFAULT_USER": USER,
            "PANDOMQ_AUTH_DEFAULT_PASSWORD": PASSWORD,
        }

    def _configuration(self, member: Member, key_file: Path) -> str:
        primaries = ", ".join(f'"{other.name}={other.place.amqp}"' for other in self.members)
        joined = ", ".join(f'"{other.place.amqp}"' for other in self.members)
        others = f"join = [{joined}]" if member in self.secondaries else f"primaries = [{primaries}]"
        return f"""[node]
name = "{member.name}"
data = "{member.disk.directory / "data"}"
listen = "{member.place.amqp}"
http = "{member.place.http}"

[cluster]
access = "proxy"
key_file = "{key_file}"
{others}
"""

    def join(self, member: Member) -> None:
        """Starts it as a secondary."""
        self.secondaries.append(member)
        self.start_member(member)

    def close(self) -> None:
        super().close()
        for member in self.secondaries:
            member.kill()

    def whole(self) -> bool:
        root = self.root()
        if root is None:
            return False
        members = self.view(root).get("members", [])
        return len(members) == len(self.members) and all(member["in_sync"] for member in members)

    def wait_for(self, member: Member, queue: str) -> None:
        end = time.monotonic() + limits.CATCH_UP_TIMEOUT_S
        while time.monotonic() < end:
            for other in self.members:
                view = self.view(other) if other is not member and other.alive else {}
                # Only the root knows the positions of the others.
                if view and view.get("name") == view.get("root"):
                    known = {found["name"]: found["in_sync"] for found in view["members"]}
                    if known.get(member.name):
                        return
            time.sleep(_LOOK_EVERY_S)
        raise RuntimeError(f"{member.name} is not in sync after {limits.CATCH_UP_TIMEOUT_S:.0f} s")

    def root(self) -> Member | None:
        """The reported root, if it accepts clients."""
        named = {self.view(member).get("root") for member in self.members if member.alive}
        for member in self.members:
            if member.name in named and member.alive and serves(member.url):
                return member
        return None

    def leader(self, turn: int) -> Member:
        root = self.root()
        if root is None:
            self.wait_until_whole()
            root = self.root()
        if root is None:
            raise RuntimeError("the cluster has no root")
        return root

    def view(self, member: Member) -> dict[str, Any]:
        """A broker's report of the cluster; nothing if it does not answer."""
        asked = urllib.request.Request(
            f"http://{member.place.http}/api/cluster", headers={"Authorization": _AUTHORIZATION}
        )
        with contextlib.suppress(OSError, ValueError), urllib.request.urlopen(asked, timeout=_HTTP_TIMEOUT_S) as answer:
            found = json.load(answer)
            if isinstance(found, dict):
                return found
        return {}
