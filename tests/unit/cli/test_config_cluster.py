"""`[cluster]`: what it makes of a node, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandomq.cli.config.load import ConfigurationError, Loaded, load
from pandomq.node.cluster_settings import ClusterSettings
from tests.unit.cli.conftest import Type

KEY = "0123456789abcdef0123456789abcdef"
THREE = 'primaries = ["n1=127.0.0.1:5672", "n2=127.0.0.1:5673", "n3=host3:5674"]\n'


def load_cluster(text: str, environment: dict[str, str] | None = None, node: str = "") -> Loaded:
    Path("cluster.key").write_text(f"{KEY}\n")
    Path("cluster.key").chmod(0o600)
    file = Path("pandomq.toml")
    file.write_text(f"[node]\n{node}\n[cluster]\n{text}")
    return load(file, environment or {}, {})


def problems_of(text: str, environment: dict[str, str] | None = None, node: str = "") -> list[str]:
    with pytest.raises(ConfigurationError) as raised:
        load_cluster(text, environment, node)
    return raised.value.problems


def made_of(text: str, environment: dict[str, str] | None = None, node: str = "") -> ClusterSettings:
    return load_cluster(text, environment, node).node_settings().cluster


def test_three_primaries_in_a_file() -> None:
    settings = made_of(f'key_file = "cluster.key"\nlease_ms = "2s"\nmin_copies = 3\n{THREE}', node='name = "n2"')
    assert tuple((member.name, member.address) for member in settings.primaries) == (
        ("n1", "127.0.0.1:5672"), ("n2", "127.0.0.1:5673"), ("n3", "host3:5674")
    )  # fmt: skip
    assert settings.key == KEY.encode()
    assert (settings.replica.lease_ms, settings.replica.min_copies) == (2000, 3)
    assert not settings.founding and not settings.bootstrap and not settings.observer


def test_the_environment_has_every_key() -> None:
    environment = {
        "PANDOMQ_CLUSTER_KEY": KEY,
        "PANDOMQ_CLUSTER_PRIMARIES": "n1=h1:5672, n2=h2:5672",
        "PANDOMQ_CLUSTER_LISTEN": "0.0.0.0:5680",
        "PANDOMQ_CLUSTER_ADVERTISE": "mq1.example.org:5672",
        "PANDOMQ_CLUSTER_ADVERTISE_HTTP": "mq1.example.org:15672",
        "PANDOMQ_CLUSTER_MIN_COPIES": "1",
        "PANDOMQ_CLUSTER_LAST_MAN_STANDING": "true",
        "PANDOMQ_CLUSTER_DISK_STALL_MS": "3s",
    }
    settings = made_of("", environment)
    assert [member.address for member in settings.primaries] == ["h1:5672", "h2:5672"]
    assert (settings.advertise, settings.http) == ("mq1.example.org:5672", "mq1.example.org:15672")
    assert settings.replica.last_man_standing and settings.replica.disk_stall_ms == 3000


def test_without_a_key_a_broker_is_alone() -> None:
    assert load(None, {}, {}).node_settings().cluster == ClusterSettings()


def test_a_broker_that_listens_everywhere_is_found_by_its_name_among_the_primaries() -> None:
    node = 'name = "n3"\nlisten = "0.0.0.0:5672"\nhttp = ":15672"'
    settings = made_of(f'key_file = "cluster.key"\n{THREE}', node=node)
    assert (settings.advertise, settings.http) == ("host3:5672", "host3:15672")


def test_a_broker_that_joins_is_a_secondary_unless_it_is_a_primary() -> None:
    joins = 'key_file = "cluster.key"\njoin = ["h1:5672"]\n'
    assert made_of(joins).observer and made_of(joins).join == ("h1:5672",)
    assert not made_of(joins + THREE).observer
    assert made_of(joins + THREE, node='name = "n9"').observer


@pytest.mark.parametrize(
    ("text", "node", "problem"),
    [
        (THREE, "", "cluster.primaries is set, but the brokers' shared key is not: set cluster.key_file"),
        ('join = ["h1:5672"]', "", "cluster.join is set, but the brokers' shared key is not: set cluster.key_file"),
        (
            'key = "short"',
            "",
            "cluster.key is shorter than 16 bytes: create a longer one, for example with `openssl rand -hex 32`",
        ),
        (f'key = "{KEY}"\n{THREE}', 'name = "n4"', "node.name is 'n4', which is not among cluster.primaries (n1, n2"),
        (f'key = "{KEY}"\nprimaries = ["n1"]', "", "cluster.primaries: 'n1' is not a primary: expected NAME=HOST:PORT"),
        (f'key = "{KEY}"\nprimaries = ["n1=h:0"]', "", "cluster.primaries: 'h:0' is not the address of a broker"),
        (
            f'key = "{KEY}"\nprimaries = ["n1=h:1", "n1=h:2"]',
            "",
            "cluster.primaries has n1 twice: names must be unique",
        ),
        (f'key = "{KEY}"\nprimaries = ["n1=h:1", "n2=h:1"]', "", "cluster.primaries has h:1 twice: addresses must"),
        (
            f'key = "{KEY}"\nmin_copies = 4\n{THREE}',
            "",
            "cluster.min_copies is 4, but there are only 3 primaries: lower it",
        ),
        (f'key = "{KEY}"\nadvertise = "off"', "", "cluster.advertise: 'off' is not an address"),
        (
            f'key = "{KEY}"\n[log]\nstore = "memory"',
            "",
            "log.store is memory, but a broker of a cluster must keep its votes on disk",
        ),
        (
            f'key = "{KEY}"',
            "proxy_protocol = true",
            "node.proxy_protocol is true, but other brokers send no PROXY header",
        ),
        (f'key = "{KEY}"\n{THREE}', 'listen = "127.0.0.1:0"', "node.listen has port 0, which clients cannot know"),
        ('listen = "127.0.0.1:5672"', "", "node.listen and cluster.listen are both 127.0.0.1:5672"),
        ('nome = "x"', "", "pandomq.toml: [cluster] nome is not a key"),
    ],
)
def test_contradictory_settings_are_refused(text: str, node: str, problem: str) -> None:
    (found,) = problems_of(text, node=node)
    assert found.startswith(problem)


def test_links_by_tls_need_all_files_and_a_place() -> None:
    assert problems_of('[cluster.tls]\ncertificate = "a.pem"\n') == [
        "[cluster.tls] is incomplete: set cluster.tls.key",
        "[cluster.tls] is incomplete: set cluster.tls.authorities",
        "[cluster.tls] is set, but cluster.listen is off: links over TLS need an address of their own",
    ]


def test_a_key_that_all_users_can_read_is_refused() -> None:
    Path("open.key").write_text(KEY)
    Path("open.key").chmod(0o644)
    (found,) = problems_of('key_file = "open.key"\n')
    assert found.endswith("open.key can be read or changed by all users of this machine: run chmod 600 open.key")
    (found,) = problems_of("", {"PANDOMQ_CLUSTER_KEY_FILE": "none.key"})
    assert found == "PANDOMQ_CLUSTER_KEY_FILE: cannot read none.key: No such file or directory"


def test_the_key_is_not_shown(type_: Type) -> None:
    Path("pandomq.toml").write_text(f'[cluster]\nkey = "{KEY}"\n')
    result = type_("config", "--join", "h1:5672,h2:5672")
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in result.stdout.splitlines()}
    assert KEY not in result.output
    assert rows["cluster.key"] == ["********", "pandomq.toml"]
    assert rows["cluster.join"] == ["h1:5672, h2:5672", "--join"]


def test_bootstrap_needs_primaries(type_: Type) -> None:
    result = type_("start", "--bootstrap")
    assert result.exit_code == 2
    assert result.stderr == (
        "pandomq: --bootstrap creates a cluster from cluster.primaries, which is empty: set it in the configuration\n"
    )
