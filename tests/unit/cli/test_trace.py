"""`pandomq trace`: what it asks of the broker, and what it says."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Type
from tests.unit.cli.fake_api import FakeApi


@pytest.fixture(autouse=True)
def home(api: FakeApi) -> None:
    api.on("GET", "/api/vhosts/%2F", {"name": "/", "tracing": True, "trace_sample": 0.01})
    api.on("PUT", "/api/vhosts/%2F", status=204)


@pytest.mark.parametrize(("sample", "part"), [("1%", 0.01), ("0.5", 0.5), ("all", 1.0), ("100%", 1.0)])
def test_a_part_is_traced(ask: Type, api: FakeApi, sample: str, part: float) -> None:
    result = ask("trace", "on", "--sample", sample)
    assert result.exit_code == 0
    assert [request.body for request in api.requests if request.method == "PUT"] == [
        {"tracing": True, "trace_sample": part}
    ]
    assert result.stderr == "1 % of the messages in vhost '/' are traced to the stream pandomq.trace\n"


def test_without_a_part_it_is_as_before(ask: Type, api: FakeApi) -> None:
    assert ask("trace", "on").exit_code == 0
    assert ask("ctl", "trace_on").exit_code == 0
    assert [request.body for request in api.requests if request.method == "PUT"] == [{"tracing": True}] * 2


def test_trace_off_ends_the_trace(ask: Type, api: FakeApi) -> None:
    assert ask("trace", "off").stderr == "vhost '/' is no longer traced\n"
    assert ask("ctl", "trace_off").exit_code == 0
    assert [request.body for request in api.requests if request.method == "PUT"] == [{"tracing": False}] * 2


@pytest.mark.parametrize("sample", ["0", "2", "101%", "-1%", "some", "%", ""])
def test_a_malformed_sample_is_a_usage_error(ask: Type, api: FakeApi, sample: str) -> None:
    assert ask("trace", "on", "--sample", sample).exit_code == 2
    assert api.requests == []


def test_a_vhost_that_is_not_there_is_not_made(ask: Type, api: FakeApi) -> None:
    for word in ("on", "off"):
        result = ask("trace", word, "--vhost", "nowhere")
        assert (result.exit_code, result.stderr) == (
            1,
            "pandomq: vhost 'nowhere' does not exist; `pandomq vhosts list` lists the vhosts\n",
        )
    assert all(request.method == "GET" for request in api.requests)


def test_the_status_of_all_vhosts(ask: Type, api: FakeApi) -> None:
    quiet = {"name": "quiet", "tracing": False, "trace_sample": 0.0}
    api.on("GET", "/api/vhosts", [{"name": "/", "tracing": True, "trace_sample": 0.01}, quiet])
    api.on("GET", "/api/queues/%2F/pandomq.trace", {"messages": 7, "message_bytes": 900})
    lines = ask("trace", "status").stdout.splitlines()
    assert lines == ["vhost\ttracing\tsample\tbatches\tbytes", "/\ttrue\t1 %\t7\t900", "quiet\tfalse\t0 %\t0\t0"]
    shown = json.loads(ask("trace", "status", "--vhost", "/", "--json").stdout)
    assert shown == [{"vhost": "/", "tracing": True, "sample": 0.01, "batches": 7, "bytes": 900}]
