"""A network of its own for each cluster: one namespace for each broker, joined by a bridge, with faults between them.

Namespaces, interfaces and the bridge are named after this process and are removed by `close`; the tests' clients reach
the brokers from the bridge's own address. A cut is made where packets arrive, so that it is silent: no sender is
notified. Needs root, `ip` and `nft`; `missing` returns what is missing.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache

COMMAND_PATIENCE_S = 20
SUBNETS = [f"198.{18 + number // 256}.{number % 256}" for number in range(512)]
"""Addresses reserved for tests of networks (RFC 2544)."""
CLIENTS = "clients"
"""The name of the tests' own end."""
_numbers = itertools.count()


def command(*words: str, stdin: str | None = None) -> str:
    result = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=COMMAND_PATIENCE_S, check=False)
    assert result.returncode == 0, f"{' '.join(words)}: {result.stderr}"
    return result.stdout


@cache
def missing() -> str | None:
    """Returns why there can be no separate network here."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    absent = [name for name in ("ip", "nft", "tc") if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} is missing: make setup"
    probe = f"pando-{os.getpid():x}-probe"
    try:
        command("ip", "netns", "add", probe)
    except AssertionError as error:
        return f"namespaces cannot be made here: {error}"
    command("ip", "netns", "delete", probe)
    return None


class Network:
    def __init__(self, names: Iterable[str]) -> None:
        token = f"{os.getpid():x}{next(_numbers):x}"
        self._bridge = f"pq{token}"
        self._namespaces = {name: f"pando-{token}-{name}" for name in names}
        self._ends = {name: f"pq{token}v{place}" for place, name in enumerate(self._namespaces)}
        assert all(len(end) < 16 for end in self._ends.values()), "interfaces have at most 15 characters"
        self._subnet = ""
        self.hosts: dict[str, str] = {}
        self._cut: set[tuple[str, str]] = set()
        self._loss_percent: dict[tuple[str, str], int] = {}

    # Start and end.

    def open(self) -> None:
        command("ip", "link", "add", self._bridge, "type", "bridge")
        self._subnet = self._claim_subnet()
        self.hosts = {name: f"{self._subnet}.{place}" for place, name in enumerate(self._namespaces, start=2)}
        self.hosts[CLIENTS] = f"{self._subnet}.1"
        command("ip", "link", "set", self._bridge, "up")
        for name, namespace in self._namespaces.items():
            end = self._ends[name]
            command("ip", "netns", "add", namespace)
            command("ip", "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", namespace)
            command("ip", "link", "set", end, "master", self._bridge, "up")
            inside = ("ip", "-n", namespace)
            command(*inside, "address", "add", f"{self.hosts[name]}/24", "dev", "eth0")
            command(*inside, "link", "set", "eth0", "up")
            command(*inside, "link", "set", "lo", "up")

    def _claim_subnet(self) -> str:
        """The address of the bridge claims it; another process may be about to take the same."""
        first = os.getpid() + next(_numbers)
        for place in range(len(SUBNETS)):
            subnet = SUBNETS[(first + place) % len(SUBNETS)]
            if subnet + "." not in command("ip", "-4", "-o", "address"):
                command("ip", "address", "add", f"{subnet}.1/24", "dev", self._bridge)
                return subnet
        raise AssertionError("no subnet is left")

    def close(self) -> None:
        """Removes all of its existing parts, also after `open` failed half-way."""
        for name, namespace in self._namespaces.items():
            subprocess.run(["ip", "link", "delete", self._ends[name]], capture_output=True, check=False)
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", self._bridge], capture_output=True, check=False)

    def prefix(self, name: str) -> list[str]:
        """Returns the words before a command that run it in the namespace of that broker."""
        return ["ip", "netns", "exec", self._namespaces[name]]

    # Faults.

    def cut(self, source: str, target: str) -> None:
        """Drops the packets from `source` to `target`; the other direction works as before."""
        self._cut.add((source, target))
        self._apply(target)

    def cut_off(self, name: str, *others: str) -> None:
        """Drops all packets between it and the others, in either direction."""
        for other in others:
            self.cut(name, other)
            self.cut(other, name)

    def lose(self, percent: int) -> None:
        """So many of a hundred packets between brokers are lost, on every link."""
        pairs = itertools.permutations(self._namespaces, 2)
        self._loss_percent = dict.fromkeys(pairs, percent) if percent else {}
        self._apply_all()

    def slow(self, name: str, delay_ms: int, rate: str) -> str:
        """Delays its packets. Returns the method: a kernel without netem only bounds the rate, and so delays under
        load."""
        self._run(name, "tc", "qdisc", "delete", "dev", "eth0", "root", may_fail=True)
        netem = ("netem", "delay", f"{delay_ms}ms", f"{delay_ms // 4}ms", "rate", rate)
        if self._run(name, "tc", "qdisc", "add", "dev", "eth0", "root", *netem, may_fail=True):
            return "netem"
        bucket = ("tbf", "rate", rate, "burst", "8kb", "latency", f"{4 * delay_ms}ms")
        self._run(name, "tc", "qdisc", "add", "dev", "eth0", "root", *bucket)
        return "tbf"

    def heal(self) -> None:
        """Removes all faults."""
        self._cut.clear()
        self._loss_percent.clear()
        self._apply_all()
        for name in self._namespaces:
            self._run(name, "tc", "qdisc", "delete", "dev", "eth0", "root", may_fail=True)

    def _apply_all(self) -> None:
        for name in self._namespaces:
            self._apply(name)

    def _apply(self, target: str) -> None:
        if target == CLIENTS:
            # The tests' own namespace is shared with others: packets that it must not receive are dropped by the
            # sender.
            for name in self._namespaces:
                self._write_rules(name)
            return
        self._write_rules(target)

    def _write_rules(self, name: str) -> None:
        arriving = [f"ip saddr {self.hosts[source]} drop" for source, target in sorted(self._cut) if target == name]
        arriving += [
            f"ip saddr {self.hosts[source]} numgen random mod 100 < {percent} drop"
            for (source, target), percent in sorted(self._loss_percent.items())
            if target == name
        ]
        leaving = [f"ip daddr {self.hosts[CLIENTS]} drop"] if (name, CLIENTS) in self._cut else []
        chains = []
        for hook, rules in (("input", arriving), ("output", leaving)):
            text = "\n".join(rules)
            chains.append(f"chain {hook} {{ type filter hook {hook} priority 0;\n{text}\n}}")
        # The first line makes sure that there is a table to be deleted; all of it takes effect at once.
        script = "table inet faults {}\ndelete table inet faults\ntable inet faults {\n" + "\n".join(chains) + "\n}\n"
        command(*self.prefix(name), "nft", "-f", "-", stdin=script)

    def _run(self, name: str, *words: str, may_fail: bool = False) -> bool:
        try:
            command(*self.prefix(name), *words)
        except AssertionError:
            if not may_fail:
                raise
            return False
        return True
