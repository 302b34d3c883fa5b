"""Writes docs/scaling.md: the plan in words; every figure is computed."""

from tools.compare.peers import cells
from tools.compare.scaling.plan import Plan


def page(plan: Plan) -> str:
    parts = [_demand(plan), _measured(plan), _brokers(plan), _disks(plan), _network(plan), _spark(plan), _end(plan)]
    return "\n\n".join(parts) + "\n"


def _demand(plan: Plan) -> str:
    demand = plan.demand
    body = f"{demand.body_bytes:,} bytes of body, {demand.overhead_bytes} more on the network, persistent, confirmed"
    assumed = [
        ("the peak", f"{demand.peak:g} × the mean"),
        ("a message", body),
        ("destinations of a message", f"{demand.copies} subscribers with private queues, and one stream"),
        ("retention of streams", f"{demand.kept_days} day, and everything that is not archived"),
        ("network between machines", f"{demand.line_gigabits} Gbit/s; the plan uses {demand.line_share:.0%} of it"),
    ]
    return f"""# Scaling

The benchmarks generate this page from `docs/*.json`; do not edit it. It contains a plan for {demand.subscribers:,}
subscribers and {demand.messages_a_day:,} messages a day. The plan was computed, not run: from measurements on
{plan.found.cores} cores, and from these assumptions:

{cells.table(("assumption", "value"), assumed)}

The load is {plan.mean:,.0f} messages a second on average, and {plan.peak:,.0f} at the peak, which cause
{plan.peak * demand.copies:,.0f} deliveries."""


def _measured(plan: Plan) -> str:
    found = plan.found
    rows = [
        ("persistent, 1 KiB, acks, confirms, one broker", f"{found.alone:,.0f} messages/s", "benchmarks.json"),
        ("the same on three brokers", f"{found.replicated:,.0f} messages/s", "clusters.json"),
        ("fan-out to private queues, 100 B, one broker", f"{found.deliveries:,.0f} deliveries/s", "benchmarks.json"),
        ("a connection with channel, private queue and consumer", f"{found.connection_kib:.2f} KiB", "benchmarks.json"),
        ("connections opened", f"{found.opened:,.0f} a second", "benchmarks.json"),
        ("pause of confirms after the root is killed", f"{found.pause_s:.2f} s", "clusters.json"),
        ("catch-up of a broker that was away, under load", f"{found.catch_up_mib:.1f} MiB/s", "clusters.json"),
        ("rows of 1 KiB read into Spark", f"{found.read_rows:,.0f} rows/s", "spark.json"),
        ("bytes written per byte in a stream", f"{found.disk_bytes_per_byte:.2f}", "spark.json"),
        ("archived", _rate(found.archive_rows, "rows/s"), "pipelines.json"),
        ("audited", _rate(found.audit_records, "records/s"), "pipelines.json"),
    ]
    return f"""## Measurements

All measurements were made on one machine with {found.cores} cores, which brokers, load and Spark shared. A broker uses
one core.

{cells.table(("subject", "measured", "in"), rows)}"""


def _rate(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{value:,.0f} {unit}"


def _brokers(plan: Plan) -> str:
    demand, found = plan.demand, plan.found
    newcomers = demand.subscribers / plan.secondaries / plan.serving
    return f"""## Brokers

The plan has **three primaries**, the root and two backups, each on its own machine with four cores: one for the broker,
one for its disk and network threads, two spare. The peak is {plan.root_share:.0%} of what three brokers did when they
shared {found.cores} cores with the load. If the root fails, another broker replaces it in {found.pause_s:.2f} s. While
one primary is away the others continue, and no other may fail until it is back. Use five primaries if that is not
enough.

The plan has **{plan.secondaries} secondaries**, to which the subscribers connect: {plan.serving} of them for
{demand.subscribers_per_broker:,} subscribers each (no measurement had more), and one that may be away. When one is
away, each of the others has:

- {plan.connections_mib_each:,.0f} MiB of connections ({found.connection_kib:.2f} KiB each), and the messages that wait
  in private queues
- {plan.deliveries_each:,.0f} deliveries a second at the peak, {plan.deliveries_each / found.deliveries:.0%} of what one
  broker did with small messages
- after the failure of one secondary, {newcomers:,.0f} new connections,
  which take {plan.come_back_s:.1f} s at {found.opened:,.0f} a second"""


def _disks(plan: Plan) -> str:
    found = plan.found
    return f"""## Disks

Only primaries need disks. Each primary writes {plan.written_mb_at_peak:,.0f} MB/s at the peak and
{plan.written_tb_a_day:.1f} TB a day, for the log and the chunks of streams, and keeps {plan.kept_tb:.1f} TB in streams.
An SSD of {plan.disk_tb:.0f} TB permits an archive to be late by a day. It needs protection against power loss, because
every confirm waits for a sync. The load overwrites it {plan.written_tb_a_day / plan.disk_tb:.1f} times a day.

A primary that was away for an hour catches up in {plan.catch_up_min:.0f} minutes at the measured rate, at which it
shared {found.cores} cores with all other processes."""


def _network(plan: Plan) -> str:
    rows = [
        ("the root", _gigabits(plan.peak * plan.wire_bytes), f"{plan.root_out:.1f}"),
        ("a backup", _gigabits(plan.peak * plan.wire_bytes), "the reads of Spark"),
        ("a secondary", _gigabits(plan.peak * plan.wire_bytes), f"{plan.secondary_out:.1f}"),
    ]
    return f"""## Network

The table shows the traffic at the peak in Gbit/s, of {plan.demand.line_gigabits} Gbit/s per machine:

{cells.table(("broker", "in", "out"), rows)}

The root sends a message once to each broker that needs it: to 2 backups and up to {plan.secondaries} secondaries, which
is {plan.copies_from_root} copies, whatever the number of subscribers. There are fewer copies if subscribers with the
same interests share a secondary. Spark reads streams from any primary: let it read from backups."""


def _gigabits(bytes_a_second: float) -> str:
    return f"{bytes_a_second * 8 / 1e9:.1f}"


def _spark(plan: Plan) -> str:
    found = plan.found
    read_each = found.read_rows / found.cores
    parts = [
        f"""## Spark

Reading reaches {read_each:,.0f} rows per second and core, including the broker's work: {plan.peak / read_each:.1f}
cores read the peak."""
    ]
    if found.archive_rows is not None and plan.archive_day_hours is not None and plan.lake_tb_a_day is not None:
        parts.append(
            f"""The archive reaches {found.archive_rows / found.cores:,.0f} rows per second and core. With
{plan.archive_cores} cores in executors on at least two machines it keeps up with the peak when half of them are lost,
and archives a missed day in {plan.archive_day_hours:.1f} hours. The lake grows by {plan.lake_tb_a_day:.1f} TB a day if
bodies do not compress."""
        )
    else:
        parts.append("The archive is not measured yet: `make bench-pipelines`.")
    if plan.audit_core_hours is not None and found.audit_records is not None:
        parts.append(
            f"""An audit of a day, with three logs and two records per message, takes
{plan.audit_core_hours:.0f} core hours at {found.audit_records / found.cores:,.0f} records per second and core."""
        )
    parts.append(
        """Archived streams are declared with `x-retain-until-archived`: if the archive stops, the streams need more
disk space and lose no messages, until `x-max-unarchived-bytes` is reached."""
    )
    return "\n\n".join(parts)


def _end(plan: Plan) -> str:
    demand, found = plan.demand, plan.found
    first = "its core" if found.replicated <= plan.line_rate else "its network"
    return f"""## Where one root per cluster ends

One root orders, writes and sends everything that is shared. The first of these resources to be used up limits the
cluster:

- The root's core: three brokers on {found.cores} cores reached {found.replicated:,.0f} messages a second.
  One alone did {found.alone:,.0f}, and no replicated root will do more, since its kernel uses one core.
- The root's network: {plan.copies_from_root} copies of {plan.wire_bytes:,} bytes fill {demand.line_share:.0%} of
  {demand.line_gigabits} Gbit/s at {plan.line_rate:,.0f} messages a second.
- The number of secondaries that the root can supply: at this peak its network has room for those of
  {plan.line_subscribers:,} subscribers.
- The root's disk: {plan.written_mb_at_peak / plan.peak * 1000:.2f} MB/s for each thousand messages a second.

In this plan {first} is the limit, at {plan.end_rate:,.0f} messages a second, or {plan.end_a_day / 1e9:.1f} billion a
day with the same peak. A larger load needs several clusters: by vhost, by tenant or by key. Nothing crosses between
them; publishers and subscribers choose one, or use several, and Spark reads all of them. PandoMQ has no links between
clusters, and does not spread one queue over several roots."""
