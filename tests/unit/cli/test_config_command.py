"""`pandomq config`: what holds, where it came from; secrets masked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pandomq.cli.config.keys import all_keys
from tests.unit.cli.conftest import Type
from tools import configuration_page


def test_the_source_of_each_value_is_shown(type_: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("pandomq.toml").write_text('[limits]\nframe_bytes_max = "64KiB"\n')
    monkeypatch.setenv("PANDOMQ_LIMITS_QUEUES_MAX", "10")
    result = type_("config", "--listen", "0.0.0.0:5673", "--memory-mb", "512", "--heartbeat", "30")
    assert result.exit_code == 0
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in result.stdout.splitlines()}
    assert list(rows) == ["key", *all_keys()]
    assert rows["limits.frame_bytes_max"] == ["64KiB", "pandomq.toml"]
    assert rows["limits.queues_max"] == ["10", "PANDOMQ_LIMITS_QUEUES_MAX"]
    assert rows["node.listen"] == ["0.0.0.0:5673", "--listen"]
    assert rows["limits.memory_bytes_max"] == ["512MiB", "--memory-mb"]
    assert rows["limits.heartbeat_s"] == ["30s", "--heartbeat"]
    assert rows["node.data"] == ["pandomq-data/n1", "default"]


def test_json_has_plain_values(type_: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDOMQ_AUTH_DEFAULT_PASSWORD", "hush")
    result = type_("config", "--json", "--data", "/var/lib/pandomq")
    shown = json.loads(result.stdout)
    values = {key["key"]: key for key in shown["keys"]}
    assert shown["file"] is None
    assert values["limits.frame_bytes_max"] == {
        "key": "limits.frame_bytes_max", "value": 131072, "origin": "default", "from": None
    }  # fmt: skip
    assert values["node.data"]["value"] == "/var/lib/pandomq"
    assert values["auth.default_password"]["value"] == "********"
    assert values["auth.loopback_only_users"]["value"] == ["guest"]
    assert "hush" not in result.output


def test_a_file_is_checked(type_: Type) -> None:
    Path("good.toml").write_text('[node]\nname = "n2"\n')
    Path("bad.toml").write_text("[node]\nnome = 1\n[limits]\nchannel_max = 0\n")
    good, bad = type_("config", "--check", "good.toml"), type_("config", "--check", "bad.toml")
    assert (good.exit_code, good.stdout) == (0, "good.toml: nothing is wrong\n")
    assert bad.exit_code == 2
    first, second = bad.stderr.splitlines()
    assert first.startswith("pandomq: bad.toml: [node] nome is not a key: did you mean name? Known: name, data, listen")
    assert second == "pandomq: bad.toml: [limits] channel_max: must be at least 1, not 0"


def test_two_files_are_one_too_many(type_: Type) -> None:
    assert type_("config", "--check", "a.toml", "--config", "b.toml").exit_code == 2


def test_the_page_is_up_to_date() -> None:
    text = configuration_page.PAGE.read_text()
    assert configuration_page.page(text) == text, "run tools/configuration_page.py"


def test_every_key_is_described_by_itself() -> None:
    """A reader sees one row of the table, and not the rows before it."""
    for key in all_keys().values():
        assert key.description, key.path
        assert not key.description.startswith(("The same", "These", "This")), key.path
