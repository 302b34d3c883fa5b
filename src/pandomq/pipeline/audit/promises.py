"""Compares the log with the ledgers, on Spark: confirmed messages are in the log, acked ones are not delivered again,
order is kept.

It joins by the ids of messages. A message that is in a queue twice (its publisher sent it again, or it came back
through dead letters) cannot be followed by its id, and is left out where that matters; the report contains their
number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pandomq.pipeline.audit import ledgers, message_scan
from pandomq.pipeline.audit.findings import Findings, Promise, Statement, Violation
from pandomq.pipeline.audit.limits import NAMED_MAX, TASK_BYTES
from pandomq.pipeline.audit.logs import Piece
from pandomq.pipeline.audit.queues import QueueCatalogue

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

LOG_SCHEMA: Final = (
    "leaves BOOLEAN, queue_id BIGINT, sequence BIGINT, index BIGINT, time_ms BIGINT, message_id STRING, "
    "routing BINARY, expires BOOLEAN"
)
QUEUE_SCHEMA: Final = (
    "queue_id BIGINT, vhost STRING, queue STRING, durable BOOLEAN, drops BOOLEAN, limited BOOLEAN, unordered BOOLEAN, "
    "leased BOOLEAN, deleted BOOLEAN"
)
JUDGED: Final = (Promise.CONFIRMED, Promise.ACKED, Promise.ORDER)
UNORDERED: Final = {
    "published": "messages that were published twice, or were in a queue more than once",
    "delivered": "deliveries of such messages, and from queues with priorities, streams and leases",
}
SHUFFLE_PARTS: Final = "spark.sql.shuffle.partitions"
ADAPTIVE: Final = "spark.sql.adaptive.enabled"
CODEGEN: Final = "spark.sql.codegen.wholeStage"
CUT_OFF: Final = "cut off by a forced promotion, and listed"
ID: Final = ["vhost", "message_id"]
PLACE: Final = ["vhost", "queue", "message_id"]


@dataclass(frozen=True)
class JudgedRange:
    """The judged range, by time in milliseconds."""

    first_ms: int
    end_ms: int
    tolerance_ms: int
    gaps: Sequence[tuple[int, int]]
    """Times of entries that no broker has or can read."""


EVERYTHING: Final = JudgedRange(0, 2**62, 0, ())


class Promises:
    def __init__(
        self,
        session: SparkSession,
        pieces: Sequence[Piece],
        paths: Sequence[str],
        catalogue: QueueCatalogue,
        findings: Findings,
    ) -> None:
        self._session = session
        # As many parts as there are cores, or more if one would be large: each costs as much as reading a megabyte.
        size_bytes = sum(piece.place.size_bytes for piece in pieces)
        parts = max(session.sparkContext.defaultParallelism, size_bytes // TASK_BYTES)
        # Spark spends seconds on plans and on code for them, which a small log does not pay back.
        wanted = {SHUFFLE_PARTS: str(parts), ADAPTIVE: "false", CODEGEN: str(size_bytes > TASK_BYTES).lower()}
        self._settings_before = {name: session.conf.get(name) for name in wanted}
        for name, value in wanted.items():
            session.conf.set(name, value)
        self._judged = EVERYTHING
        self._catalogue = catalogue
        self._findings = findings
        self.ledger = _read_ledgers(session, paths).persist()
        self.log = _read_log(session, pieces)
        self._queues = session.createDataFrame(_queue_rows(catalogue), QUEUE_SCHEMA)
        self.places = self._places().persist()

    def close(self) -> None:
        self.places.unpersist()
        self.ledger.unpersist()
        for name, value in self._settings_before.items():
            if value is not None:
                self._session.conf.set(name, value)

    def _places(self) -> DataFrame:
        """Each message in each queue: where it entered, and where it left."""
        from pyspark.sql import functions as f

        entered = self.log.where("NOT leaves AND message_id IS NOT NULL").drop("leaves")
        left = (
            self.log.where("leaves")
            .groupBy("queue_id", "sequence")
            .agg(f.min("index").alias("left_index"), f.min("time_ms").alias("left_ms"))
        )
        joined = entered.join(left, ["queue_id", "sequence"], "left").join(f.broadcast(self._queues), "queue_id")
        return joined.groupBy(*PLACE, "queue_id").agg(
            f.count("*").alias("copies"),
            f.count("left_index").alias("exits"),
            f.min("sequence").alias("sequence"),
            f.min("index").alias("index"),
            f.max("left_index").alias("left_index"),
            f.max("left_ms").alias("left_ms"),
            f.max("expires").alias("expires"),
            f.min("routing").alias("routing"),
            *(f.first(name).alias(name) for name in ("drops", "limited", "unordered", "leased", "deleted")),
        )

    # The contents of the ledgers.

    def judge(self, judged: JudgedRange) -> None:
        """Judges only this range from now on."""
        self._judged = judged

    def read_ledgers(self) -> dict[str, int]:
        """Number of lines of each kind; reports the unreadable ones. The ledgers are not read a second time."""
        unnamed = "kind NOT IN ('opened', 'purged') AND message_id IS NULL"
        counts: dict[str, int] = {}
        for row in self.ledger.selectExpr("kind", f"{unnamed} AS unnamed").groupBy("kind", "unnamed").count().collect():
            counts[row["kind"]] = counts.get(row["kind"], 0) + row["count"]
            if row["unnamed"]:
                for promise in JUDGED:
                    self._findings.of(promise).left_out("lines of ledgers without the id of a message", row["count"])
        if ledgers.UNREADABLE in counts:
            bad = self.ledger.where(f"kind = '{ledgers.UNREADABLE}'").orderBy("ledger", "row").limit(NAMED_MAX)
            for row in bad.collect():
                where = f"ledger {row['ledger']}: line {row['row'] + 1}"
                self._findings.notes.append(f"{where} is malformed: {row['message_id']}")
            for promise in JUDGED:
                self._findings.of(promise).left_out("malformed lines of ledgers", counts[ledgers.UNREADABLE])
        return counts

    def _in_range(self, time: str = "time") -> Column:
        from pyspark.sql import functions as f

        time_ms = f.col(time) * 1000
        return (time_ms >= self._judged.first_ms) & (time_ms < self._judged.end_ms)

    def _published(self) -> DataFrame:
        """Each message once: when it was published and confirmed, and its target."""
        from pyspark.sql import functions as f

        said = self.ledger.where("kind IN ('published', 'confirmed') AND message_id IS NOT NULL")
        target = f.coalesce("queue", f.when(f.coalesce("exchange", f.lit("")) == "", f.col("routing_key")))
        confirmed = f.col("kind") == "confirmed"
        return (
            said.withColumn("target", target)
            .groupBy(*ID)
            .agg(
                f.first("target", ignorenulls=True).alias("target"),
                f.first("exchange", ignorenulls=True).alias("exchange"),
                f.first("routing_key", ignorenulls=True).alias("routing_key"),
                f.min("time").alias("time"),
                f.max(f.when(confirmed, f.col("time"))).alias("confirmed_time"),
                f.sum(f.when(confirmed, 0).otherwise(1)).alias("said"),
            )
        )

    # No confirmed message is lost.

    def check_confirmed(self, cut_off: Iterable[str], surplus: dict[str, str], enough: bool) -> None:
        """`cut_off`: ids that a forced promotion cut off; `surplus`: those that a broker has and the log does not."""
        from pyspark.sql import functions as f

        statement = self._findings.of(Promise.CONFIRMED)
        # By both its times: a later confirm may be in a part of the log that was not there to be read.
        confirmed = self._published().where(self._in_range()).where(self._in_range("confirmed_time")).persist()
        where = self.places.groupBy(*ID).agg(f.collect_set("queue").alias("queues"))
        known = (
            self._queues.where("durable")
            .groupBy("vhost", f.col("queue").alias("target"))
            .agg(f.min("drops").alias("target_drops"))
        )
        found = confirmed.join(where, ID, "left").join(f.broadcast(known), ["vhost", "target"], "left")
        there = f.when(f.col("target").isNull(), f.col("queues").isNotNull()).otherwise(
            f.coalesce(f.array_contains("queues", f.col("target")), f.lit(False))
        )
        found = found.withColumn("there", there).persist()
        keys = found.where("there AND target IS NULL").groupBy("vhost", "exchange", "routing_key")
        fed = keys.agg(f.min("time").alias("fed_from"), f.max("time").alias("fed_to"))
        told = found.join(f.broadcast(fed), ["vhost", "exchange", "routing_key"], "left")
        cut = self._session.createDataFrame([(one,) for one in sorted(cut_off)], "message_id STRING")
        told = told.join(f.broadcast(cut.withColumn("cut", f.lit(True))), "message_id", "left")
        excuse = f.when(f.col("cut"), f.lit(CUT_OFF)).otherwise(self._why_not_judged(enough))
        told = told.withColumn("reason", f.when(~f.col("there"), excuse))
        lost_count = 0
        for row in told.groupBy("there", "reason").count().collect():
            if row["reason"] is not None:
                statement.left_out(row["reason"], row["count"])
            else:
                statement.judged += row["count"]
                lost_count += 0 if row["there"] else row["count"]
        if lost_count:
            lost = told.where("reason IS NULL AND NOT there").orderBy("time").limit(NAMED_MAX).collect()
            for row in lost:
                statement.breaks(_lost(row, surplus.get(row["message_id"], "")), 0)
            statement.count += lost_count
        self._check_left(confirmed)
        for frame in (found, confirmed):
            frame.unpersist()

    def _why_not_judged(self, enough: bool) -> Column:
        """The reason why a confirmed message that is not in the log is not judged; null if there is none."""
        from pyspark.sql import functions as f

        judged = self._judged
        begun, ended = f.col("time") * 1000 - judged.tolerance_ms, f.col("confirmed_time") * 1000 + judged.tolerance_ms
        hidden = f.lit(False)
        for first_ms, last_ms in judged.gaps:
            hidden = hidden | ((begun <= last_ms) & (ended >= first_ms))
        named = f.col("target").isNotNull()
        unbound = f.lit(False)
        for vhost, exchange in sorted(self._catalogue.unbound):
            unbound = unbound | ((f.col("vhost") == vhost) & (f.coalesce("exchange", f.lit("")) == exchange))
        fed = f.coalesce((f.col("time") >= f.col("fed_from")) & (f.col("time") <= f.col("fed_to")), f.lit(False))
        reason = f.when(f.lit(not enough), f.lit("too few brokers' logs: another log may have it"))
        reason = reason.when(hidden, f.lit("may be in entries that were deleted or are unreadable"))
        reason = reason.when(
            named & f.col("target_drops").isNull(), f.lit("its queue is in no log: private, transient or unknown")
        )
        reason = reason.when(named & f.col("target_drops"), f.lit("its queue drops messages"))
        return reason.when(~named & (unbound | ~fed), f.lit("it is not known whether its exchange had a queue for it"))

    def _check_left(self, confirmed: DataFrame) -> None:
        """A message that has left a queue that keeps its messages was acked by some consumer."""
        from pyspark.sql import functions as f

        statement = self._findings.of(Promise.CONFIRMED)
        settled = self.ledger.where("kind IN ('acked', 'rejected')").select(*PLACE).distinct()
        watched = settled.select("vhost", "queue").distinct()
        purged = self.ledger.where("kind = 'purged'").select("vhost", "queue").distinct()
        again = self.ledger.where("kind = 'delivered' AND redelivered").select(*PLACE).distinct()
        left = self.places.where("exits > 0 AND exits = copies AND NOT (drops OR leased OR deleted OR expires)")
        left = left.join(f.broadcast(watched), ["vhost", "queue"]).join(f.broadcast(purged), ["vhost", "queue"], "anti")
        left = left.join(confirmed.select(*ID), ID, "semi").join(settled, PLACE, "anti")
        left = left.join(again.withColumn("again", f.lit(True)), PLACE, "left").where("NOT limited OR again IS NULL")
        self._name(left.orderBy("left_index"), statement, _left_unseen)

    def _name(self, wrong: DataFrame, statement: Statement, violation: Callable[[Any], Violation]) -> None:
        """Lists violations of a promise; counts them separately only if there are more than are listed."""
        rows = wrong.limit(NAMED_MAX + 1).collect()
        for row in rows[:NAMED_MAX]:
            statement.breaks(violation(row), 0)
        statement.count += wrong.count() if len(rows) > NAMED_MAX else len(rows)

    # No acked message comes back.

    def check_acked(self) -> None:
        from pyspark.sql import functions as f

        statement = self._findings.of(Promise.ACKED)
        came = self.ledger.where("kind = 'delivered' AND message_id IS NOT NULL").where(self._in_range())
        came = came.groupBy(*PLACE).agg(f.max("time").alias("last_time"), f.max("ledger").alias("ledger"))
        gone = came.join(self.places, PLACE).where("left_ms IS NOT NULL AND exits = copies")
        late = f.col("last_time") * 1000 > f.col("left_ms") + self._judged.tolerance_ms
        gone = gone.withColumn("several", f.expr("copies > 1 OR leased")).withColumn("late", late).persist()
        late_count = 0
        for row in gone.groupBy("several", "late").count().collect():
            if row["several"]:
                statement.left_out("messages that were in their queue more than once, or leased", row["count"])
            else:
                statement.judged += row["count"]
                late_count += row["count"] if row["late"] else 0
        if late_count:
            self._name(gone.where("late AND NOT several").orderBy("left_index"), statement, _came_back)
        gone.unpersist()

    # Order is kept.

    def check_order(self) -> None:
        from pyspark.sql import functions as f

        published = self._published().select(*ID, "target", "exchange", "routing_key", "said")
        lines = self.ledger.where("kind = 'published'").where(self._in_range()).drop("exchange", "routing_key", "queue")
        rows = lines.join(published, ID).join(self.places, ID)
        direct = f.coalesce(f.col("queue") == f.col("target"), f.lit(False))
        for vhost, exchange in sorted(self._catalogue.delayed):
            rows = rows.where(~((f.col("vhost") == vhost) & (f.coalesce("exchange", f.lit("")) == exchange)))
        # Dead letters arrive in an order of their own.
        rows = rows.where(direct | (f.col("routing") == _routing("exchange", "routing_key")))
        self._rising(rows.withColumn("clear", f.expr("copies = 1 AND said = 1")), "published", "entered the queue")
        delivered = self.ledger.where("kind = 'delivered' AND NOT redelivered").where(self._in_range())
        rows = delivered.drop("exchange", "routing_key").join(self.places, PLACE)
        clear = f.expr("copies = 1 AND NOT (unordered OR leased)")
        self._rising(rows.withColumn("clear", clear), "delivered", "is in the queue")

    def _rising(self, rows: DataFrame, kind: str, what: str) -> None:
        """Checks that numbers in the queue increase with the lines of a ledger, by channel and queue; for rows that are
        `clear`."""
        from pyspark.sql import functions as f
        from pyspark.sql.window import Window

        statement = self._findings.of(Promise.ORDER)
        line = Window.partitionBy("clear", "ledger", "life", "channel", "vhost", "queue", "queue_id").orderBy("row")
        before = line.rowsBetween(Window.unboundedPreceding, -1)
        rows = rows.withColumn("before", f.max("sequence").over(before))
        wrong = f.expr("clear AND coalesce(sequence < before, FALSE)").alias("wrong")
        wrong_count = 0
        for row in rows.groupBy("clear", wrong).count().collect():
            if not row["clear"]:
                statement.left_out(UNORDERED[kind], row["count"])
                continue
            statement.judged += row["count"]
            wrong_count += row["count"] if row["wrong"] else 0
        if wrong_count:
            named = rows.where("clear AND sequence < before").orderBy("ledger", "row")
            self._name(named, statement, partial(_overtook, kind, what))


def _lost(row: Any, holder: str) -> Violation:
    place = row["target"] or f"any queue of exchange {row['exchange']}"
    text = f"was confirmed, and never entered {place}" + (f"; {holder} has it outside the log" if holder else "")
    expected = "an entry of the log that holds it"
    return Violation(Promise.CONFIRMED, text, expected, row["message_id"], place, brokers=holder)


def _left_unseen(row: Any) -> Violation:
    text = f"was confirmed, left the queue with entry {row['left_index']}, but was never acked"
    return _violation(Promise.CONFIRMED, row, text, "an ack in a ledger before it left the queue", "left_index")


def _came_back(row: Any) -> Violation:
    after_s = row["last_time"] - row["left_ms"] / 1000
    text = f"left the queue with entry {row['left_index']}, and was delivered {after_s:.1f} s later"
    return _violation(Promise.ACKED, row, text, "no delivery after that", "left_index")


def _overtook(kind: str, what: str, row: Any) -> Violation:
    where = f"ledger {row['ledger']}, line {row['row'] + 1}"
    text = f"was {kind} ({where}) after one that {what} at offset {row['before']}"
    return _violation(Promise.ORDER, row, text, f"an offset above {row['before']}", "index")


def _violation(promise: Promise, row: Any, text: str, expected: str, index: str) -> Violation:
    queue = row["queue"] if row["vhost"] == "/" else f"{row['queue']} in {row['vhost']}"
    return Violation(promise, text, expected, row["message_id"], queue, row["sequence"], row[index])


def _routing(exchange: str, key: str) -> Column:
    """In the form of a record: both as short strings."""
    from pyspark.sql import functions as f

    def short(name: str) -> Column:
        text = f.encode(f.coalesce(f.col(name), f.lit("")), "utf-8")
        return f.concat(f.unhex(f.lpad(f.hex(f.octet_length(text)), 2, "0")), text)

    return f.concat(short(exchange), short(key))


def _queue_rows(catalogue: QueueCatalogue) -> list[tuple[Any, ...]]:
    return [
        (
            queue_id,
            one.vhost,
            one.name,
            one.durable,
            one.drops,
            one.limits_deliveries,
            one.by_priority or one.stream,
            one.leased,
            one.deleted,
        )
        for queue_id, one in catalogue.queues.items()
        if not one.inner
    ]


def _read_ledgers(session: SparkSession, paths: Sequence[str]) -> DataFrame:
    rows = session.sparkContext.parallelize(list(enumerate(paths, start=1)), len(paths))
    tasks = session.createDataFrame(rows, "number INT, path STRING")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from ledgers.ledger_rows(row["number"], row["path"])

    return tasks.mapInArrow(read, ledgers.SPARK_SCHEMA)


def _read_log(session: SparkSession, pieces: Sequence[Piece]) -> DataFrame:
    size_bytes = sum(piece.place.size_bytes for piece in pieces)
    slices = max(min(len(pieces), session.sparkContext.defaultParallelism), size_bytes // TASK_BYTES)
    rows = session.sparkContext.parallelize([(place,) for place in range(len(pieces))], max(1, slices))
    tasks = session.createDataFrame(rows, "place INT")
    shared = session.sparkContext.broadcast(list(pieces))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from message_scan.rows(shared.value[row["place"]])

    return tasks.mapInArrow(read, LOG_SCHEMA)
