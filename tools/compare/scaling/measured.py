"""The input of a plan, from the files with the measurements."""

from statistics import median

import msgspec

from tools.compare.clusters import works as cluster_works
from tools.compare.clusters.comparison import ClusterComparison
from tools.compare.peers import works
from tools.compare.peers.comparison import Comparison
from tools.compare.peers.ledger import FAST, Ledger
from tools.compare.pipelines.figures import ARCHIVE, AUDIT, PipelineFigures
from tools.compare.spark.figures import ALL_COLUMNS, SparkFigures

PERSISTENT_SUBJECT = "persistent, 1 KiB, acks, confirms"
FAN_OUT_SUBJECT = "fan-out to 200 private queues, 100 B"
DELIVERIES_UNIT = "deliveries/s"
KILLED_SUBJECT = "the leader is killed (kill -9)"


class NotMeasured(Exception):
    """A figure is missing; the text names it."""


class Measured(msgspec.Struct, frozen=True):
    """Rates are per second."""

    cores: int
    """Of the machine, for brokers, load and Spark together."""
    alone: float
    """Persistent messages of 1 KiB through one broker."""
    replicated: float
    """The same through three, each on all disks."""
    deliveries: float
    """Of 100 B, to private queues, by one broker."""
    connection_kib: float
    opened: float
    """Connections."""
    pause_s: float
    """Without a confirm after the root is killed."""
    catch_up_mib: float
    """Sent to a returning broker, while others work."""
    read_rows: float
    """Into Spark, all columns, 1 KiB."""
    disk_bytes_per_byte: float
    """Written for each byte of a body in a stream."""
    archive_rows: float | None
    audit_records: float | None
    """In three logs: a message that enters or leaves a queue."""
    lake_bytes_per_row: float | None
    """Beyond the body."""


def measured(
    alone: Comparison, together: ClusterComparison, spark: SparkFigures, jobs: PipelineFigures | None
) -> Measured:
    """Raises NotMeasured."""
    catch_up = cluster_works.CATCH_UP_SUBJECT
    sent_mib = _found(together.speed, catch_up, cluster_works.SENT_UNIT)
    read = spark.read.get(ALL_COLUMNS)
    if not read:
        raise NotMeasured("rows read into Spark")
    archive = None if jobs is None else jobs.largest(ARCHIVE)
    audit = None if jobs is None else jobs.largest(AUDIT)
    return Measured(
        cores=together.machine.cores,
        alone=_found(alone.ledger, PERSISTENT_SUBJECT, works.RATE),
        replicated=_found(together.speed, cluster_works.THROUGHPUT_SUBJECT, works.RATE),
        deliveries=_found(alone.ledger, FAN_OUT_SUBJECT, DELIVERIES_UNIT),
        connection_kib=_found(alone.ledger, works.CONNECTIONS_SUBJECT, works.WEIGHT_UNIT),
        opened=_found(alone.ledger, works.CONNECTIONS_SUBJECT, works.OPENED_UNIT),
        pause_s=_found(together.faults, KILLED_SUBJECT, cluster_works.PAUSE_UNIT),
        catch_up_mib=sent_mib / _found(together.speed, catch_up, cluster_works.CATCH_UP_UNIT),
        read_rows=median(read),
        disk_bytes_per_byte=spark.disk_bytes_per_byte,
        archive_rows=None if archive is None else archive.rate,
        audit_records=None if audit is None else audit.rate,
        lake_bytes_per_row=(
            None if jobs is None or archive is None else jobs.lake_bytes / archive.items - archive.body_bytes
        ),
    )


def _found(ledger: Ledger, subject: str, unit: str) -> float:
    value = ledger.median(subject, FAST, unit)
    if value is None:
        raise NotMeasured(f"{subject}, {unit}")
    return value
