"""The values in force, their origin, and the errors for invalid values."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.cli.config import load as loading
from pandomq.cli.config.keys import Key, Value, all_keys
from pandomq.cli.config.load import ConfigurationError, Loaded, load
from pandomq.cli.config.sources import from_environment
from pandomq.node.data.places import DataPlaces
from pandomq.node.settings import NodeSettings


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pandomq.toml of the developer's takes part."""
    monkeypatch.chdir(tmp_path)


def load_text(text: str, environment: dict[str, str] | None = None, **options: Any) -> Loaded:
    file = Path("pandomq.toml")
    file.write_text(text)
    return load(file, environment or {}, {path.replace("__", "."): value for path, value in options.items()})


def problems_of(text: str, environment: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigurationError) as raised:
        load_text(text, environment)
    return raised.value.problems


def test_an_option_beats_the_environment_beats_the_file_beats_the_default() -> None:
    text = '[node]\nname = "from-file"\nlisten = "127.0.0.1:1"\nlog_level = "error"\n'
    environment = {"PANDOMQ_NODE_NAME": "from-environment", "PANDOMQ_NODE_LISTEN": "127.0.0.1:2"}
    loaded = load_text(text, environment, node__name="from-option")
    holding = {path: (h.value, h.origin.kind, h.origin.where) for path, h in loaded.holdings.items()}
    assert holding["node.name"] == ("from-option", "option", "--name")
    assert holding["node.listen"] == ("127.0.0.1:2", "environment", "PANDOMQ_NODE_LISTEN")
    assert holding["node.log_level"] == ("error", "file", "pandomq.toml")
    assert holding["node.log_format"] == ("text", "default", "")


LIMITS = [key for key in all_keys().values() if key.section == "limits" and key.name.startswith(("queues", "bindings"))]


@given(st.data())
def test_the_highest_source_that_has_a_value_wins(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(LIMITS))
    in_file, in_environment = (data.draw(st.none() | st.integers(1, 10**6)) for _ in range(2))
    text = "" if in_file is None else f"[limits]\n{key.name} = {in_file}\n"
    environment = {} if in_environment is None else {key.variable: str(in_environment)}
    expected = next(value for value in (in_environment, in_file, 0) if value is not None)
    assert getattr(load_text(text, environment).node_settings(), key.name) == expected


def test_without_anything_a_node_has_its_own_defaults() -> None:
    settings, defaults = load(None, {}, {}).node_settings(), NodeSettings()
    for field in NodeSettings.__struct_fields__:
        if field not in ("memory_bytes_max", "platform", "data"):
            assert getattr(settings, field) == getattr(defaults, field), field
    assert settings.memory_bytes_max > 0
    assert settings.platform == f"Python {platform.python_version()}"
    assert settings.data == DataPlaces(told=":5680", advertised="127.0.0.1:5680")


def test_every_setting_named_in_the_table_exists() -> None:
    assert set(loading.SETTINGS) <= set(NodeSettings.__struct_fields__)
    assert set(loading.SETTINGS.values()) <= set(all_keys())


def test_values_reach_the_settings_with_their_units() -> None:
    settings = load_text(
        """
        [node]
        compat_product = "PandoMQ"
        [limits]
        frame_bytes_max = "64KiB"
        handshake_ms_max = "5s"
        consumer_timeout_ms = 1000
        heartbeat_s = "2min"
        memory_bytes_max = "1GB"
        [auth]
        loopback_only_users = []
        """
    ).node_settings()
    assert settings.product == "PandoMQ"
    assert (settings.frame_bytes_max, settings.memory_bytes_max) == (65536, 10**9)
    assert (settings.handshake_ms_max, settings.consumer_timeout_ms, settings.heartbeat_s) == (5000, 1000, 120)
    assert settings.loopback_only_users == ()


SAMPLES: dict[type, str] = {bool: "true", Path: "x.pem", tuple[str, ...]: "a, b"}


@pytest.mark.parametrize("key", all_keys().values(), ids=lambda key: str(key.path))
def test_every_key_can_be_set_by_the_environment(key: Key) -> None:
    text = key.choices[-1] if key.choices else SAMPLES.get(key.type, "127.0.0.1:7")
    if key.type is int:
        text = str(int(key.meta.ge or 0) + 7)
    expected: Value = key.parse(text)
    source = from_environment({key.variable: text})
    assert source.problems == []
    assert source.given[key.path].value == expected


def test_an_unknown_key_is_named_with_its_file_and_the_nearest() -> None:
    (problem,) = problems_of("[limits]\nframe_byte_max = 8192\n")
    assert problem.startswith("pandomq.toml: [limits] frame_byte_max is not a key: did you mean frame_bytes_max?")
    assert "connections_max" in problem


@pytest.mark.parametrize("section", ["clusters", "trace", "nodes"])
def test_a_section_that_nothing_reads_is_refused(section: str) -> None:
    (problem,) = problems_of(f"[{section}]\nx = 1\n")
    assert problem.startswith(f"pandomq.toml: {section} is not a section")
    assert "auth, cluster, data, http, limits, log, node" in problem


def test_an_unknown_variable_is_named_with_the_nearest() -> None:
    (problem,) = problems_of("", {"PANDOMQ_LIMITS_QUEUE_MAX": "1"})
    assert "PANDOMQ_LIMITS_QUEUE_MAX in the environment is not a key" in problem
    assert "did you mean PANDOMQ_LIMITS_QUEUES_MAX?" in problem


@pytest.mark.parametrize(
    "variable",
    [
        "PANDOMQ_PLAIN",
        "PANDOMQ_URL",
        "PANDOMQ_TEST_URL",
        "PATH",
        "PANDOMQ_NODE_SERVICE_HOST",
        "PANDOMQ_NODE_PORT_5672_TCP_ADDR",
        "PANDOMQ_NODE_PORT",
    ],
)
def test_variables_of_others_are_none_of_ours(variable: str) -> None:
    load_text("", {variable: "tcp://10.0.0.1:5672"})


def test_an_empty_variable_counts_as_none() -> None:
    assert load_text("", {"PANDOMQ_NODE_LISTEN": ""}).configuration.node.listen == "127.0.0.1:5672"


def test_all_problems_are_reported_at_once() -> None:
    found = problems_of('[limits]\nchannel_max = 0\nmesage_bytes_max = 1\n[node]\nlisten = "here"\n')
    assert len(found) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[limits]\nchannel_max = 0", "[limits] channel_max: must be at least 1, not 0"),
        ("[limits]\nchannel_max = 65536", "must be at most 65535, not 65536"),
        ("[limits]\nchannel_max = true", "expected a number, not true"),
        ("[limits]\nchannel_max = 1.5", "expected a number, not 1.5"),
        ('[limits]\nchannel_max = "many"', "'many' is not a number"),
        ("[limits]\nqueues_max = 99999999999999999999", "must be at most 9007199254740992"),
        ('[limits]\nmemory_bytes_max = "9999TiB"', "must be at most 8192TiB, not 9999TiB"),
        ("[limits]\nqueues_max = -1", "must be at least 0, not -1"),
        ('[limits]\nframe_bytes_max = "1KiB"', "must be at least 4KiB, not 1KiB"),
        ('[limits]\nframe_bytes_max = "1MiB"', "must be at most 256KiB, not 1MiB"),
        ('[limits]\nhandshake_ms_max = "soon"', "'soon' is not a duration"),
        ("[node]\nname = 5", "expected a text, not 5"),
        ('[node]\nname = ""', "expected a text that is not empty"),
        ('[node]\nlisten = "host:port"', "'host:port' is not an address: expected HOST:PORT"),
        ('[node]\nlisten = "host:65536"', "'host:65536' is not an address: the largest port is 65535"),
        ('[node]\nlog_format = "xml"', "'xml' is unknown: expected one of text, json"),
        ('[node]\nproxy_protocol = "maybe"', "expected true or false, not 'maybe'"),
        ("[node]\ntls = 1", "tls is a section, not a value: write its keys below [node.tls]"),
        ("node = 1", "node is a section, not a value: write its keys below [node]"),
        ("[auth]\nloopback_only_users = 3", "expected a list of texts, not 3"),
        ("[auth]\nloopback_only_users = [3]", "expected a text, not 3"),
        ("[node\n", "pandomq.toml: "),
    ],
)
def test_a_wrong_value_is_reported_with_its_place(text: str, words: str) -> None:
    (problem,) = problems_of(text)
    assert problem.startswith("pandomq.toml: ")
    assert words in problem


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[node]\nname = "../../etc"', "node.name is '../../etc'"),
        ('[node]\nlisten = "off"', "no client could connect"),
        ('[node.tls]\nlisten = "127.0.0.1:5671"\nkey = "k"', "but node.tls.certificate is not set"),
        (
            '[node.tls]\nlisten = "127.0.0.1:5672"\nkey = "k"\ncertificate = "c"',
            "node.listen and node.tls.listen are both 127.0.0.1:5672",
        ),
        ('[node.tls]\nclient_certificates = "ask"', "but node.tls.authorities is not set"),
        ("[limits]\nconnections_max = 5\nconnections_per_user_max = 6", "would never be reached"),
        ('[auth]\ndefault_user = "admin"', "with the default password"),
        (
            '[auth]\nmechanisms = ["PLAIN", "GSSAPI"]',
            "has unknown mechanisms GSSAPI: known are PLAIN, AMQPLAIN, EXTERNAL",
        ),
        ("[auth]\nmechanisms = []", "no client could log in"),
        ('[auth]\nmechanisms = ["EXTERNAL"]', "but node.tls.client_certificates is ignore"),
    ],
)
def test_keys_that_do_not_go_together(text: str, words: str) -> None:
    (problem,) = problems_of(text)
    assert words in problem


def test_paths_in_a_file_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    file = tmp_path / "etc" / "broker.toml"
    file.write_text('[node]\ndata = "data"\n[node.tls]\nkey = "/abs/key.pem"\n')
    node = load(file, {}, {}).configuration.node
    assert node.data == tmp_path / "etc" / "data"
    assert node.tls.key == Path("/abs/key.pem")


def test_the_data_directory_is_named_after_the_broker() -> None:
    assert load(None, {"PANDOMQ_NODE_NAME": "n7"}, {}).configuration.node.data == Path("pandomq-data/n7")


def test_a_secret_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(" pass word \r\n")
    by_file = load_text('[auth]\ndefault_password_file = "secret"\n')
    by_variable = load_text("", {"PANDOMQ_AUTH_DEFAULT_PASSWORD_FILE": str(tmp_path / "secret")})
    assert by_file.configuration.auth.default_password == " pass word "
    assert by_variable.configuration.auth.default_password == " pass word "
    assert by_variable.holdings["auth.default_password"].origin.where == "PANDOMQ_AUTH_DEFAULT_PASSWORD_FILE"


def test_a_secret_beats_a_secret_from_a_lower_source(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from the file")
    text = '[auth]\ndefault_password_file = "secret"\n'
    loaded = load_text(text, {"PANDOMQ_AUTH_DEFAULT_PASSWORD": "from the environment"})
    assert loaded.configuration.auth.default_password == "from the environment"


def test_a_secret_given_twice_is_refused_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("one")
    environment = {
        "PANDOMQ_AUTH_DEFAULT_PASSWORD": "hush",
        "PANDOMQ_AUTH_DEFAULT_PASSWORD_FILE": str(tmp_path / "secret"),
    }
    (problem,) = problems_of("", environment)
    assert "keep only one of the two" in problem
    assert "hush" not in problem


def test_a_secret_file_that_cannot_be_read(tmp_path: Path) -> None:
    (problem,) = problems_of("", {"PANDOMQ_AUTH_DEFAULT_PASSWORD_FILE": "absent"})
    assert problem == "PANDOMQ_AUTH_DEFAULT_PASSWORD_FILE: cannot read absent: No such file or directory"
    (tmp_path / "empty").touch()
    (problem,) = problems_of('[auth]\ndefault_password_file = "empty"\n')
    assert "not empty" in problem
    (problem,) = problems_of("[auth]\ndefault_password_file = 5\n")
    assert "expected the path of a file" in problem


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read absent\.toml: No such file"):
        load(Path("absent.toml"), {}, {})
    with pytest.raises(ConfigurationError, match=r"cannot read gone\.toml"):
        load(None, {"PANDOMQ_CONFIG": "gone.toml"}, {})
    assert load(None, {}, {}).file is None


def test_a_file_in_the_working_directory_is_read_by_itself() -> None:
    Path("pandomq.toml").write_text('[node]\nname = "here"\n')
    Path("other.toml").write_text('[node]\nname = "there"\n')
    assert load(None, {}, {}).configuration.node.name == "here"
    assert load(None, {"PANDOMQ_CONFIG": "other.toml"}, {}).configuration.node.name == "there"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_configuration_or_a_refusal(content: bytes) -> None:
    Path("pandomq.toml").write_bytes(content)
    found: list[str] = []
    try:
        load(Path("pandomq.toml"), {}, {})
    except ConfigurationError as error:
        found = error.problems
    assert all("pandomq.toml" in problem for problem in found)


def test_names_and_proxies_that_cannot_be_are_named() -> None:
    found = problems_of(
        '[http]\nhost_names = ["mq.example.com:80", "10.0.0.1"]\n[node]\ntrusted_proxies = ["10.0.0.1/8"]\n'
    )
    assert [problem.partition(":")[0] for problem in found] == [
        "http.host_names has 'mq.example.com",
        "http.host_names has '10.0.0.1'",
        "node.trusted_proxies has '10.0.0.1/8'",
    ]


def test_the_host_at_which_the_api_listens_is_a_name_of_it() -> None:
    variables = {"PANDOMQ_NODE_HTTP": "mq.example.com:15672", "PANDOMQ_HTTP_HOST_NAMES": "broker.example.com"}
    assert load(None, variables, {}).node_settings().http_host_names == ("broker.example.com", "mq.example.com")
