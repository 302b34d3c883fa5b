"""Long measurements, made once, or a few times if they vary: long queues, a restart with them, and a minute of churn.

Each begins on a new broker. Memory is the process's resident set when the queue is full and there is no load; disk is
the size of the broker's directory.
"""

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from pandomq.bench import process
from pandomq.bench.broker_process import BrokerProcess
from pandomq.bench.client.wire import BrokerRefused
from pandomq.bench.load import Load
from pandomq.bench.measurements.long_queue import LongQueue, load_of
from pandomq.bench.measurements.overview import ACKED, PERSISTENT
from pandomq.bench.run import Show, measure
from tools.compare.peers import works
from tools.compare.peers.ledger import FAST, Ledger

MIB = 2**20


class Endurance:
    def __init__(self, brokers: Mapping[str, BrokerProcess], scale: works.Scale, ledger: Ledger, show: Show) -> None:
        self._brokers = brokers
        self._scale = scale
        self._ledger = ledger
        self._show = show

    def run(self) -> None:
        for work in works.long_works(self._scale):
            for name in work.brokers * work.times:
                self._guarded(work.subject, name, works.MEMORY_UNIT, partial(self._long, work, name))
        self._guarded(works.CHURN_SUBJECT, FAST, works.CHURN_MEMORY_UNIT, self._churn)

    def _guarded(self, subject: str, name: str, unit: str, step: Callable[[], None]) -> None:
        broker = self._brokers[name]
        # The other brokers rest in the meantime, and have finished their clean-up as well.
        for other in self._brokers.values():
            if other is not broker:
                other.close()
        broker.fresh()
        broker.untouched = False
        try:
            step()
        except (BrokerRefused, OSError, RuntimeError) as error:
            self._ledger.note_error(subject, name, unit, str(error))
        finally:
            broker.close()

    def _show_for(self, name: str, subject: str) -> Show:
        return lambda phase, done, rate: self._show(f"{name}, {subject}: {phase}", done, rate)

    # Long queues.

    def _long(self, work: works.LongWork, name: str) -> None:
        broker = self._brokers[name]
        show = self._show_for(name, work.subject)
        load = load_of(work.kind, broker.url, work.size_bytes)
        short_us = self._short_queue_us(load, broker.pid, show) if work.drains else None
        queue = LongQueue(load, work.kind, work.messages, broker.pid, show)
        found = queue.result
        self._note(work, name, works.FILL_UNIT, found.fill.rate)
        self._note(work, name, works.MEMORY_UNIT, found.resident_full_bytes / MIB)
        self._note(work, name, works.PEAK_UNIT, found.resident_peak_bytes / MIB)
        self._note(work, name, works.DISK_UNIT, broker.disk_bytes() / MIB)
        if work.restarts:
            self._restart(work, name, queue, works.RESTART_UNIT, cleanly=True)
            if name == FAST:
                self._restart(work, name, queue, works.CRASH_UNIT, cleanly=False)
        if short_us is None:
            return
        queue.drain()
        assert found.drain is not None, "it was full"
        long_us = found.fill.broker_cpu_us + found.drain.broker_cpu_us
        self._ledger.note(works.queued_subject(work), name, works.RATIO, long_us / short_us)

    def _short_queue_us(self, load: Load, pid: int, show: Show) -> float:
        """The broker's time for a message, in and out, when it passes a queue that stays short."""
        short = msgspec.structs.replace(
            load,
            **ACKED,
            backlog_max=works.SHORT_QUEUE,
            warm_up_s=self._scale.warm_up_s,
            duration_s=self._scale.duration_s,
        )
        found = measure(short, show, pid)
        assert found.broker_cpu_us is not None
        return found.broker_cpu_us

    def _restart(self, work: works.LongWork, name: str, queue: LongQueue, unit: str, *, cleanly: bool) -> None:
        broker = self._brokers[name]
        self._show_for(name, work.subject)("restart", 0, 0)

        queue.restart(partial(broker.restart, cleanly=cleanly))
        found = queue.result
        if found.kept != found.queued:
            raise BrokerRefused(f"{found.kept} of {found.queued} messages came back")
        self._note(work, name, unit, broker.ready_s)

    def _note(self, work: works.LongWork, name: str, unit: str, value: float) -> None:
        self._ledger.note(work.subject, name, unit, value)

    # Churn.

    def _churn(self) -> None:
        broker = self._brokers[FAST]
        samples: list[tuple[int, int]] = []
        show = self._show_for(FAST, works.CHURN_SUBJECT)

        def watch(phase: str, done: float, rate: float) -> None:
            show(phase, done, rate)
            if phase == "measure":
                samples.append((process.resident_bytes(broker.pid), broker.disk_bytes()))

        load = Load(url=broker.url, warm_up_s=self._scale.churn_s / 6, duration_s=self._scale.churn_s)
        found = measure(msgspec.structs.replace(load, **PERSISTENT), watch, broker.pid)
        if found.missing or found.refused:
            raise BrokerRefused(f"{found.missing} messages missing, {found.refused} refused")
        middle = len(samples) // 2
        for place, unit, largest_unit in (
            (0, works.CHURN_MEMORY_UNIT, works.MEMORY_UNIT),
            (1, works.CHURN_DISK_UNIT, works.DISK_UNIT),
        ):
            before, after = (max(sample[place] for sample in half) for half in (samples[:middle], samples[middle:]))
            self._ledger.note(works.CHURN_SUBJECT, FAST, unit, after / before)
            self._ledger.note(works.CHURN_SUBJECT, FAST, largest_unit, max(before, after) / MIB)
        self._ledger.note(works.CHURN_SUBJECT, FAST, works.RATE, found.processed_rate)
