"""Traces in a real broker's stream to windows in a lake: compared with a second definition, after any interruption."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from pyarrow import parquet

from pandomq.pipeline.report import render
from pandomq.pipeline.rollup import sketch
from pandomq.pipeline.rollup.job import Rollup, RollupOptions
from pandomq.pipeline.rollup.results import PARTS
from pandomq.pipeline.rollup.steps import RollupFiles
from pandomq.pipeline.rollup.sums import WINDOWS
from pandomq.trace_form import TRACE_STREAM, Events, Kind, cluster_event, decode_events
from tests.integration.configured_broker import ConfiguredBroker, running
from tests.spark.ledger import declare_stream, read_stream
from tests.support.trace_windows import Key, windows
from tests.support.traces import BEGIN_US, batch_of, batches, bodies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND_US = 1_000_000
pytestmark = pytest.mark.timeout(600)
LATENESS_S = 30


class Cut(Exception):
    """The job is ended here."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    directory = tmp_path_factory.mktemp("traces") / "b"
    with running(ConfiguredBroker(directory, node={"http": "127.0.0.1:0"})) as broker:
        yield broker


@pytest.fixture
def trace(broker: ConfiguredBroker) -> Iterator[None]:
    """An empty trace stream."""
    declare_stream(broker.connect, TRACE_STREAM)
    yield
    with contextlib.closing(broker.connect()) as connection:
        connection.channel().queue_delete(TRACE_STREAM)


def publish(broker: ConfiguredBroker, some: Iterable[bytes]) -> None:
    with contextlib.closing(broker.connect()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for body in some:
            channel.basic_publish("", TRACE_STREAM, body)


def options(broker: ConfiguredBroker) -> RollupOptions:
    return RollupOptions((f"amqp://guest:guest@127.0.0.1:{broker.port}/",), once=True, lateness_s=LATENESS_S)


def rolled_up(spark: SparkSession, broker: ConfiguredBroker, lake: Path) -> Rollup:
    rollup = Rollup(spark, lake, options(broker))
    rollup.run()
    return rollup


def results(lake: Path) -> dict[Key, dict[str, Any]]:
    """Returns the results of closed windows, each of which is there once."""
    files = RollupFiles(lake, "/")
    found: dict[Key, dict[str, Any]] = {}
    for window, length_s in WINDOWS.items():
        for path in files.results(window):
            for row in parquet.ParquetFile(path).read().to_pylist():
                names = (row["subject"], row["name"], row["within"], row["measure"])
                key = (length_s, round(row["time"].timestamp()) * SECOND_US, *names)
                assert key not in found, "a window was closed twice"
                found[key] = row
    return found


def check(
    found: dict[Key, dict[str, Any]],
    some: Iterable[Events],
    watermark_us: int,
    lengths_s: Iterable[int] = tuple(WINDOWS.values()),
) -> None:
    truth = windows(some, lengths_s)
    truth = {key: row for key, row in truth.items() if key[1] + key[0] * SECOND_US <= watermark_us}
    assert found.keys() == truth.keys()
    for key, row in found.items():
        assert (row["events"], row["messages"]) == (truth[key].events, truth[key].messages)
        for name, part in PARTS.items():
            exact = truth[key].percentile(part)
            assert row[name] is None if exact is None else row[name] == pytest.approx(exact, rel=sketch.ERROR * 1.001)


@pytest.mark.proves("S5")
@pytest.mark.usefixtures("trace")
def test_windows_and_the_report(spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path) -> None:
    some = batches(1, messages=1500, spacing_us=60_000)
    told = batch_of([cluster_event(BEGIN_US + 20 * SECOND_US, "elected", {"root": "<b2>"})], number=1000)
    publish(broker, bodies([*some, told]))
    rollup = rolled_up(spark, broker, tmp_path / "lake")
    newest_us = max(max(batch.time_us) for batch in some)
    check(results(tmp_path / "lake"), some, newest_us - LATENESS_S * SECOND_US)

    summary = rollup.summary("10s")
    events = sum(map(len, some))
    assert summary.facts["events"] == summary.facts["events in all"] == events
    tables = {table.title: table for table in summary.tables}
    assert set(tables) >= {"Queues", "Exchanges", "Brokers", "Dead letters", "Hot keys", "Sizes", "Slowest consumers"}
    expected = windows(some, [10**9])
    for name, column in (("Queues", "queue"), ("Exchanges", "exchange"), ("Brokers", "broker")):
        rows = [dict(zip(tables[name].headers, row, strict=True)) for row in tables[name].rows]
        truth = {key[3]: row.events for key, row in expected.items() if (key[2], key[5]) == (column, "published")}
        # It contains open windows as well as closed ones.
        assert {row[column]: row["published"] for row in rows} == {
            name or "(default)": at for name, at in truth.items()
        }
    html = render("rollup", [summary])
    page = ElementTree.fromstring(html.removeprefix("<!DOCTYPE html>\n"))
    drawn = [element for element in page.iter() if element.tag.endswith("}svg")]
    assert len(drawn) >= 6 and sum(element.tag.endswith("}polyline") for element in page.iter()) == 7
    assert "elected root=<b2>" in "".join(page.itertext())

    # A continuous job ends when it is told to, after the batch that it has begun.
    late = batches(7, messages=50, spacing_us=1, per_batch=10_000)
    publish(broker, bodies(late))
    going_on = Rollup(spark, tmp_path / "lake", replace(options(broker), once=False, every_s=0.1))
    going_on.run(lambda more: going_on.stop() if more else None)
    again = going_on.summary("1m")
    assert again.facts["steps"] == 1 and again.facts["events in all"] == events + sum(map(len, late))


@pytest.mark.proves("S5")
@pytest.mark.usefixtures("trace")
def test_late_and_doubled_batches(spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path) -> None:
    some = batches(2, messages=900, spacing_us=120_000)
    third, lake = len(some) // 3, tmp_path / "lake"
    early, middle, rest = some[:third], some[third : 2 * third], some[2 * third :]
    publish(broker, bodies([*early, early[0], *rest]))
    rolled_up(spark, broker, lake)
    watermark_us = max(max(batch.time_us) for batch in rest) - LATENESS_S * SECOND_US
    publish(broker, [*bodies([*middle, early[1], rest[0]]), b"no trace", bodies([some[0]])[0][:-3]])
    rolled_up(spark, broker, lake)
    account = RollupFiles(lake, "/").step.knowledge.account
    assert (account.batches, account.duplicates, account.malformed) == (len(some), 3, 2)
    late = {
        length_s: sum(
            time_us // (length_s * SECOND_US) * length_s * SECOND_US + length_s * SECOND_US <= watermark_us
            for batch in middle
            for time_us in batch.time_us
        )
        for length_s in WINDOWS.values()
    }
    assert account.late == {length_s: count for length_s, count in late.items() if count} and late[10] > 0
    found = results(lake)
    check({key: row for key, row in found.items() if key[0] == 10}, [*early, *rest], watermark_us, [10])
    # An event that is too late for ten seconds is in time for the hour, which is open.
    publish(broker, bodies([batch_of([], number=5000), *batches_after(2 * 3600)]))
    rolled_up(spark, broker, lake)
    hours = {key: row for key, row in results(lake).items() if key[0] == 3600}
    check(hours, some, BEGIN_US + 3600 * SECOND_US, [3600])


def batches_after(seconds: int) -> list[Events]:
    found = batches(9, messages=2, spacing_us=1)
    for batch in found:
        for at, time_us in enumerate(batch.time_us):
            batch.time_us[at] = time_us + seconds * SECOND_US
    return found


@pytest.mark.proves("S5", "S7")
@pytest.mark.usefixtures("trace")
def test_a_rollup_that_is_cut_off_counts_each_event_once(
    spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, lake = batches(3, messages=900, spacing_us=120_000), tmp_path / "lake"
    decided = RollupFiles.decide

    def cut_before(*_: Any) -> None:
        raise Cut("results and sums are written, and the step is not decided")

    def cut_after(*arguments: Any) -> None:
        decided(*arguments)
        raise Cut("the step is decided, and Spark does not know that the batch is done")

    third = -(-len(some) // 3)
    for cut, at in ((cut_before, 0), (cut_after, third)):
        publish(broker, bodies(some[at : at + third]))
        with monkeypatch.context() as patch:
            patch.setattr(RollupFiles, "decide", cut)
            with pytest.raises(Exception, match="Cut"):
                rolled_up(spark, broker, lake)
    publish(broker, bodies(some[2 * third :]))
    rolled_up(spark, broker, lake)
    account = RollupFiles(lake, "/").step.knowledge.account
    assert account.events == sum(map(len, some)) and not account.late and not account.duplicates
    check(results(lake), some, max(max(batch.time_us) for batch in some) - LATENESS_S * SECOND_US)


@pytest.mark.proves("S5")
def test_the_rollup_agrees_with_the_trace_of_a_broker(
    spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path
) -> None:
    with broker.api() as api:
        assert api.put("vhosts/traced", json={"tracing": True}).is_success
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        assert api.put("permissions/traced/guest", json=everything).is_success
    connect = partial(broker.connect, virtual_host="traced")
    with contextlib.closing(connect()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("work", arguments={"x-dead-letter-exchange": "amq.fanout"})
        channel.queue_bind("work", "amq.topic", "job.#")
        for number in range(40):
            channel.basic_publish("amq.topic", f"job.{number % 4}", b"x" * 100)
        channel.basic_publish("amq.topic", "nowhere", b"")
        for method, _, _ in channel.consume("work", consumer_tag="worker"):
            if method.delivery_tag % 4:
                channel.basic_ack(method.delivery_tag)
            else:
                channel.basic_reject(method.delivery_tag, requeue=False)
            if method.delivery_tag == 40:
                break
    told = [decode_events(body) for body in read_stream(connect, TRACE_STREAM, 1, silence_s=3.0)]
    rollup = Rollup(
        spark, tmp_path / "lake", RollupOptions((f"amqp://guest:guest@127.0.0.1:{broker.port}/traced",), once=True)
    )
    rollup.run()
    summary = rollup.summary("1m")
    assert summary.facts["events"] == sum(event.kind != Kind.CLUSTER for batch in told for event in batch.rows())
    tables = {table.title: table for table in summary.tables}
    queue = dict(zip(tables["Queues"].headers, tables["Queues"].rows[0], strict=True))
    wanted = {"queue": "work", "published": 40, "bytes": 4000, "delivered": 40, "acked": 30, "dead letters": 10}
    assert {name: queue[name] for name in wanted} == wanted
    assert list(tables["Dead letters"].rows) == [("traced", "work", "rejected", 10)]
    assert {row[2:4] for row in tables["Hot keys"].rows} >= {(f"job.{number}", 10) for number in range(4)}
    assert [row[3] for row in tables["Exchanges"].rows if row[1] == "amq.topic"] == [4000]
    assert [row[4] for row in tables["Exchanges"].rows if row[1] == "amq.topic"] == [1]
    assert len(tables["Slowest consumers"].rows) == 1 and "worker" in str(tables["Slowest consumers"].rows[0][1])


def test_nothing_to_roll_up(spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path) -> None:
    """There is not even a stream."""
    rollup = rolled_up(spark, broker, tmp_path / "lake")
    summary = rollup.summary("10s")
    assert summary.verdict == "there were no new events" and summary.facts["events in all"] == 0
    assert list(summary.tables) == [] and "no new events" in render("rollup", [summary])
