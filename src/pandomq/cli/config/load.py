"""Joins the sources: the effective values, their origins, and the settings of a node.

Raises `ConfigurationError` with every problem found. Loading has no other effect than reading files, so that a running
broker may do it again.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from pandomq.cli.config import checks
from pandomq.cli.config.cluster import cluster_settings
from pandomq.cli.config.data_port import data_places
from pandomq.cli.config.http_api import host_names
from pandomq.cli.config.keys import Key, Value, all_keys
from pandomq.cli.config.sections import Configuration, LimitsSection
from pandomq.cli.config.sources import DEFAULT, ConfigSource, Given, Origin, from_environment, from_file, from_options
from pandomq.journal.limits import Fsync, JournalSettings
from pandomq.node.settings import NodeSettings

FILE_VARIABLE: Final = "PANDOMQ_CONFIG"
FILE_IN_PLACE: Final = Path("pandomq.toml")
"""Read if nothing else is named and the working directory has one."""
DATA_DIRECTORY: Final = Path("pandomq-data")

SETTINGS: Final = {
    "name": "node.name",
    "product": "node.compat_product",
    "user": "auth.default_user",
    "password": "auth.default_password",
    "loopback_only_users": "auth.loopback_only_users",
    "mechanisms": "auth.mechanisms",
    "trusted_proxies": "node.trusted_proxies",
    **{name: f"limits.{name}" for name in LimitsSection.__struct_fields__},
}
"""Fields of `NodeSettings`, and the keys that set them: a new field needs one line here; a new limit needs none. The
`[cluster]` section has a struct of its own."""


class ConfigurationError(ValueError):
    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Holding(msgspec.Struct, frozen=True):
    """A key with its effective value."""

    key: Key
    value: Value
    origin: Origin


class Loaded(msgspec.Struct, frozen=True):
    configuration: Configuration
    holdings: dict[str, Holding]
    file: Path | None

    def node_settings(self, *, bootstrap: bool = False) -> NodeSettings:
        values: dict[str, Any] = {field: self.holdings[path].value for field, path in SETTINGS.items()}
        cluster = cluster_settings(self.configuration, bootstrap=bootstrap)
        return NodeSettings(
            **values,
            platform=f"Python {platform.python_version()}",
            cluster=cluster,
            data=data_places(self.configuration),
            http_host_names=host_names(self.configuration),
        )

    def journal_settings(self) -> JournalSettings | None:
        """None: the log is in memory."""
        log = self.configuration.log
        if log.store == "memory":
            return None
        settings = JournalSettings(
            segment_bytes=log.segment_bytes,
            fsync=Fsync(log.fsync),
            fsync_interval_ms=log.fsync_interval_ms,
            snapshot_log_bytes=log.snapshot_bytes,
            disk_free_bytes_min=log.free_bytes_min,
            reserve_bytes=log.reserve_bytes,
            retain_bytes=log.retain_for_audit_bytes,
            retain_ms=log.retain_for_audit_ms,
        )
        return settings.of_secondary() if cluster_settings(self.configuration).observer else settings


def load(file: Path | None, environment: Mapping[str, str], options: Mapping[str, object]) -> Loaded:
    """The effective values for a broker started with that file, that environment and those options (by their keys'
    paths)."""
    file = file or _file_by_itself(environment)
    sources = [from_options(options), from_environment(environment), from_file(file) if file else ConfigSource()]
    _raise_for([problem for source in sources for problem in source.problems])
    holdings = {path: _holding(key, sources) for path, key in all_keys().items()}
    if holdings["node.data"].value is None:
        directory = DATA_DIRECTORY / str(holdings["node.name"].value)
        holdings["node.data"] = Holding(all_keys()["node.data"], directory, DEFAULT)
    configuration = msgspec.convert(_nested(holdings), Configuration)
    _raise_for(list(checks.problems(configuration)))
    return Loaded(configuration, holdings, file)


def _file_by_itself(environment: Mapping[str, str]) -> Path | None:
    named = environment.get(FILE_VARIABLE)
    if named:
        return Path(named)
    return FILE_IN_PLACE if FILE_IN_PLACE.is_file() else None


def _holding(key: Key, sources: list[ConfigSource]) -> Holding:
    given = next((source.given[key.path] for source in sources if key.path in source.given), None)
    if given is None:
        default = key.default if key.default is not None or not key.default_text else key.parse(key.default_text)
        given = Given(default, DEFAULT)
    return Holding(key, given.value, given.origin)


def _nested(holdings: dict[str, Holding]) -> dict[str, Any]:
    """The file's shape: tables in tables."""
    tables: dict[str, Any] = {}
    for holding in holdings.values():
        table = tables
        for part in holding.key.section.split("."):
            table = table.setdefault(part, {})
        table[holding.key.name] = holding.value
    return tables


def _raise_for(problems: list[str]) -> None:
    if problems:
        raise ConfigurationError(problems)
