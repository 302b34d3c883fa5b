"""`cluster up`: which brokers it would start, and how."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pandomq.cli.cluster.plan import ClusterPlan
from pandomq.cli.cluster.polling import BrokerAnswers, ClusterAnswers
from pandomq.cli.config.load import load
from pandomq.cli.failures import WrongUse
from tests.unit.cli.conftest import Type


def plan(primaries: int = 3, secondaries: int = 1, port: int = 5672, http_port: int = 15672) -> ClusterPlan:
    return ClusterPlan(primaries=primaries, secondaries=secondaries, port=port, http_port=http_port, data=Path("d"))


def test_names_and_ports_follow_each_other() -> None:
    places = plan().places()
    assert [(place.name, place.port, place.http_port, place.primary) for place in places] == [
        ("n1", 5672, 15672, True),
        ("n2", 5673, 15673, True),
        ("n3", 5674, 15674, True),
        ("n4", 5675, 15675, False),
    ]
    assert places[1].pid_file == Path("d/n2/pid")


def test_each_broker_is_configured_as_planned() -> None:
    made = plan()
    made.make_key()
    inherited = {
        "PATH": "/bin",
        "PANDOMQ_CLUSTER_KEY": "another key of sixteen bytes",
        "PANDOMQ_CLUSTER_LEASE_MS": "2s",
        "PANDOMQ_NODE_LISTEN": "0.0.0.0:1",
    }
    for place in made.places():
        environment = made.environment(place, inherited)
        assert environment["PATH"] == "/bin"
        words = made.command(place)
        options = dict(zip(words[4::2], words[5::2], strict=True))
        keys = {"--name": "node.name", "--listen": "node.listen", "--http": "node.http", "--join": "cluster.join"}
        loaded = load(None, environment, {keys[name]: value for name, value in options.items() if name in keys})
        settings = loaded.node_settings()
        assert (settings.name, settings.cluster.advertise) == (place.name, place.address)
        assert (settings.cluster.replica.lease_ms, len(settings.cluster.key)) == (2000, 64)
        assert settings.cluster.observer is not place.primary
        assert len(settings.cluster.primaries) == (3 if place.primary else 0)
        assert len(settings.cluster.join) == (0 if place.primary else 3)


def test_a_key_is_made_once() -> None:
    assert plan().make_key()
    key = Path("d/cluster.key")
    content = key.read_text()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert not plan().make_key()
    assert key.read_text() == content


@pytest.mark.parametrize(("port", "http_port"), [(5672, 5674), (65534, 15672), (5672, 65533)])
def test_ports_that_cannot_be(port: int, http_port: int) -> None:
    with pytest.raises(WrongUse):
        plan(port=port, http_port=http_port).places()


def test_only_with_an_unknown_broker_is_a_usage_error(type_: Type) -> None:
    result = type_("cluster", "up", "--only", "n9")
    assert (result.exit_code, result.stderr) == (
        2,
        "pandomq: --only 'n9' is not a broker of this cluster: expected one of n1, n2, n3\n",
    )


def test_the_views_of_the_brokers_are_combined() -> None:
    def told(name: str, role: str, in_sync: bool) -> dict[str, object]:
        return {
            "name": name,
            "role": role,
            "in_sync": in_sync,
            "log_index": 5,
            "lag_bytes": 7 if role == "backup" else 0,
        }

    of_root = {
        "role": "root",
        "term": 3,
        "cluster": "c",
        "members": [told("n1", "root", True), told("n2", "backup", True)],
    }
    of_backup = {"role": "backup", "term": 3, "cluster": "c", "members": [told("n2", "backup", False)]}
    answers = ClusterAnswers(
        {
            "n1": BrokerAnswers(of_root, "ready"),
            "n2": BrokerAnswers(of_backup, "ready: …"),
            "n3": BrokerAnswers(None, ""),
        }
    )
    assert (answers.root, answers.term, answers.cluster_id) == ("n1", 3, "c")
    assert answers.members["n2"]["in_sync"] is True and answers.members["n2"]["lag_bytes"] == 7
    assert "n3" not in answers.members
