"""Conditions between keys. Each check is one condition, and its message says what to change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pandomq.cli.config import cluster, data_port, http_api
from pandomq.cli.config.keys import OFF
from pandomq.cli.config.sections import AuthSection, Configuration, LimitsSection, TlsSection
from pandomq.wire.sasl import EXTERNAL, KNOWN_MECHANISMS

_FREE_PORT: Final = "0"


def problems(configuration: Configuration) -> Iterator[str]:
    node = configuration.node
    if cluster.NODE_NAME.fullmatch(node.name) is None:
        yield (
            f"node.name is '{node.name}': expected up to 64 letters, digits and . _ @ -, "
            "with a letter or a digit first (it names a directory)"
        )
    if node.listen == OFF and node.tls.listen == OFF:
        yield "node.listen and node.tls.listen are both off, so that no client could connect: set one of them"
    yield from _same_addresses(
        {
            "node.listen": node.listen,
            "node.tls.listen": node.tls.listen,
            "node.http": node.http,
            "cluster.listen": configuration.cluster.listen,
            "data.listen": configuration.data.listen or OFF,
            "data.tls_listen": configuration.data.tls_listen or OFF,
        }
    )
    yield from _tls_problems(node.tls)
    yield from cluster.problems(configuration)
    yield from data_port.problems(configuration)
    yield from http_api.problems(configuration)
    yield from _limits_problems(configuration.limits)
    yield from _auth_problems(configuration.auth)
    yield from _mechanism_problems(configuration.auth, node.tls)


def _same_addresses(addresses: dict[str, str]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for key, address in addresses.items():
        if address == OFF or address.endswith(f":{_FREE_PORT}"):
            continue
        if address in seen:
            yield f"{seen[address]} and {key} are both {address}: choose different ports"
        seen.setdefault(address, key)


def _tls_problems(tls: TlsSection) -> Iterator[str]:
    if tls.listen != OFF:
        for name in ("certificate", "key"):
            if getattr(tls, name) is None:
                yield f"node.tls.listen is {tls.listen}, but node.tls.{name} is not set"
    if tls.client_certificates != "ignore" and tls.authorities is None:
        yield f"node.tls.client_certificates is {tls.client_certificates}, but node.tls.authorities is not set"


def _limits_problems(limits: LimitsSection) -> Iterator[str]:
    for name in ("connections_per_user_max", "connections_per_vhost_max"):
        value: int = getattr(limits, name)
        if value > limits.connections_max:
            yield (
                f"limits.{name} is {value}, above limits.connections_max ({limits.connections_max}), and would never "
                "be reached: lower it"
            )


def _auth_problems(auth: AuthSection) -> Iterator[str]:
    fresh = AuthSection()
    if auth.default_user != fresh.default_user and auth.default_password == fresh.default_password:
        yield (
            f"auth.default_user is '{auth.default_user}' with the default password: set auth.default_password or "
            "auth.default_password_file"
        )
    if len(auth.default_user.encode()) > 255:
        yield "auth.default_user is longer than 255 bytes: choose a shorter name"


def _mechanism_problems(auth: AuthSection, tls: TlsSection) -> Iterator[str]:
    unknown = [name for name in auth.mechanisms if name not in KNOWN_MECHANISMS]
    if unknown:
        yield f"auth.mechanisms has unknown mechanisms {', '.join(unknown)}: known are {', '.join(KNOWN_MECHANISMS)}"
    if not auth.mechanisms:
        yield "auth.mechanisms is empty, so that no client could log in: list at least one"
    if EXTERNAL in auth.mechanisms and tls.client_certificates == "ignore":
        yield "auth.mechanisms has EXTERNAL, but node.tls.client_certificates is ignore: set it to ask or require"
