"""Legal clients that work beside the hostile ones, in a process of their own, and their account.

A publisher with confirms numbers its messages; they go to a durable queue and to a stream. A consumer acknowledges the
queue's deliveries, a stream reader reads the stream over AMQP, and a reader of the data port reads its chunks as Spark
does. All confirmed messages must arrive everywhere, in order; no client may lose its connection; and none may wait
longer than PAUSE_S_MAX, unless the broker's main thread did not get the processor meanwhile (`/proc/PID/ schedstat` has
the time).
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pandomq.data_client.client import DataClient
from tests.integration.data_rows import rows_of
from tests.support.client import Address, Connection

PAUSE_S_MAX: Final = 0.5
QUEUE, STREAM, EXCHANGE = "bystander.q", "bystander.s", "bystander"
EVERY_S: Final = 0.005
PATIENCE_S: Final = 20.0
SAMPLE_S: Final = 0.02
ROOT: Final = Path(__file__).parents[3]


class Starvation:
    """The time for which the brokers' main threads, and this process, were ready to run and did not."""

    def __init__(self, pids: list[int]) -> None:
        self._paths = [Path(f"/proc/{pid}/schedstat") for pid in pids] + [Path("/proc/self/schedstat")]
        self._samples: deque[tuple[float, float]] = deque(maxlen=100_000)
        self.longest_sleep_s = 0.0
        """The largest delay of a sleep of this process, which a busy machine causes."""
        self.sample()

    def sample(self) -> None:
        waited_ns = 0
        for path in self._paths:
            try:
                waited_ns += int(path.read_text().split()[1])
            except (OSError, IndexError):
                continue
        self._samples.append((time.monotonic(), waited_ns / 1e9))

    def during(self, began: float, ended: float) -> float:
        self.sample()
        before = max((waited for at, waited in list(self._samples) if at <= began), default=self._samples[0][1])
        after = min((waited for at, waited in list(self._samples) if at >= ended), default=self._samples[-1][1])
        return after - before

    def watch(self, over: threading.Event) -> None:
        while not over.is_set():
            began = time.monotonic()
            time.sleep(SAMPLE_S)
            self.longest_sleep_s = max(self.longest_sleep_s, time.monotonic() - began - SAMPLE_S)
            self.sample()


class Pauses:
    """The longest time between two signs of life of one bystander."""

    def __init__(self, starvation: Starvation) -> None:
        self._starvation = starvation
        self.longest_s = self.longest_unexcused_s = 0.0

    def waited(self, began: float) -> None:
        ended = time.monotonic()
        pause_s = ended - began
        self.longest_s = max(self.longest_s, pause_s)
        if pause_s > PAUSE_S_MAX:
            own_s = pause_s - self._starvation.during(began, ended) - self._starvation.longest_sleep_s
            self.longest_unexcused_s = max(self.longest_unexcused_s, own_s)


class Bystanders:
    """The bystanders, inside their own process."""

    def __init__(self, addresses: list[Address], data_urls: str, pids: list[int]) -> None:
        """The addresses are those of the publisher, the consumer, and the stream reader."""
        self._publish_at, self._consume_at, self._read_at = addresses
        self._data_urls = data_urls
        self._starvation = Starvation(pids)
        self._over = threading.Event()
        self._published = threading.Event()
        """The publisher has ended."""
        self.confirmed = 0
        self.consumed = self.streamed = self.read = 0
        self.failures: list[str] = []
        self.pauses = {name: Pauses(self._starvation) for name in ("publisher", "consumer", "stream", "data port")}

    def run(self, wait: Callable[[], object]) -> dict[str, Any]:
        self._declare()
        work = (self._publish, self._consume, self._read_stream, self._read_chunks)
        threads = [threading.Thread(target=self._guarded, args=(one,), daemon=True) for one in work]
        watch = threading.Thread(target=self._starvation.watch, args=(self._over,), daemon=True)
        for thread in (watch, *threads):
            thread.start()
        wait()
        self._over.set()
        for thread in threads:
            thread.join(3 * PATIENCE_S)
            if thread.is_alive():
                self.failures.append("a bystander never came to its end")
        return self.account()

    def account(self) -> dict[str, Any]:
        for name, count in (("queue", self.consumed), ("stream", self.streamed), ("data port", self.read)):
            if not self.failures and count < self.confirmed:
                self.failures.append(f"{self.confirmed} messages were confirmed, and the {name} gave {count} of them")
        for name, pauses in self.pauses.items():
            if pauses.longest_unexcused_s > PAUSE_S_MAX:
                self.failures.append(f"the {name} waited for {pauses.longest_s:.2f} s")
        return {
            "confirmed": self.confirmed,
            "consumed": self.consumed,
            "streamed": self.streamed,
            "read": self.read,
            "longest_pause_s": {name: round(pauses.longest_s, 3) for name, pauses in self.pauses.items()},
            "machine_noise_s": round(self._starvation.longest_sleep_s, 3),
            "failures": self.failures,
        }

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._published.set()
            self.failures.append(f"{work.__name__.strip('_')}: {type(error).__name__}: {error}")
            print(json.dumps({"harmed": self.failures[-1]}), flush=True)

    def _declare(self) -> None:
        channel = Connection.opened(self._publish_at, heartbeat=0).channel()
        channel.declare_exchange(EXCHANGE, "fanout", durable=True)
        for queue, kind in ((QUEUE, "quorum"), (STREAM, "stream")):
            channel.declare_queue(queue, exclusive=False, durable=True, arguments={"x-queue-type": kind})
            channel.bind(queue, EXCHANGE)
        channel.connection.close()

    def _publish(self) -> None:
        channel = Connection.opened(self._publish_at, heartbeat=0).channel()
        channel.rpc("confirm.select")
        number = 0
        while not self._over.is_set():
            began = time.monotonic()
            channel.publish(str(number).encode(), exchange=EXCHANGE, delivery_mode=2)
            while number == self.confirmed:
                acked = channel.expect("basic.ack", PATIENCE_S)
                self.confirmed = acked.delivery_tag
            self.pauses["publisher"].waited(began)
            number += 1
            time.sleep(EVERY_S)
        self._published.set()

    def _expects_more(self, count: int) -> bool:
        return not self._published.is_set() or count < self.confirmed

    def _consume(self) -> None:
        channel = Connection.opened(self._consume_at, heartbeat=0).channel()
        channel.rpc("basic.qos", prefetch_count=100)
        channel.consume(QUEUE)
        while self._expects_more(self.consumed):
            delivery = self._delivery(channel, "consumer", self.consumed)
            if delivery is not None:
                assert int(delivery.body) == self.consumed, f"{delivery.body!r} instead of {self.consumed}"
                assert not delivery.redelivered, f"{delivery.body!r} came twice"
                channel.send("basic.ack", delivery_tag=delivery.delivery_tag)
                self.consumed += 1

    def _read_stream(self) -> None:
        channel = Connection.opened(self._read_at, heartbeat=0).channel()
        channel.rpc("basic.qos", prefetch_count=100)
        channel.consume(STREAM, arguments={"x-stream-offset": "first"})
        while self._expects_more(self.streamed):
            delivery = self._delivery(channel, "stream", self.streamed)
            if delivery is not None:
                assert int(delivery.body) == self.streamed, f"{delivery.body!r} instead of {self.streamed}"
                channel.send("basic.ack", delivery_tag=delivery.delivery_tag)
                self.streamed += 1

    def _delivery(self, channel: Any, name: str, count: int) -> Any:
        """Returns the next delivery; None if none is due."""
        began = time.monotonic()
        while True:
            try:
                found = channel.delivery(0.1)
            except TimeoutError:
                if time.monotonic() - began > PATIENCE_S:
                    raise AssertionError(f"nothing came for {PATIENCE_S} s after {count} messages") from None
                if not self._expects_more(count):
                    return None
                continue
            self.pauses[name].waited(began)
            # The tests' client records everything that it receives, which would grow during the whole run.
            channel.connection.frames_seen.clear()
            channel.connection.methods_seen.clear()
            return found

    def _read_chunks(self) -> None:
        with DataClient(self._data_urls, timeout_s=PATIENCE_S) as client:
            while self._expects_more(self.read):
                began = time.monotonic()
                end = client.range(STREAM).end_offset
                for row in rows_of(client.chunks(STREAM, self.read, end)):
                    assert (row.offset, int(row.body)) == (self.read, self.read), f"{row} instead of {self.read}"
                    self.read += 1
                self.pauses["data port"].waited(began)
                time.sleep(5 * EVERY_S)


class BystanderProcess:
    """Starts them, checks them, and requests their account."""

    def __init__(self, addresses: list[Address], data_urls: str, pids: list[int]) -> None:
        told = {"addresses": [vars(one) for one in addresses], "data_urls": data_urls, "pids": pids}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.live.bystanders", json.dumps(told)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: deque[str] = deque()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._lines.extend(self._process.stdout)

    @property
    def harm(self) -> str | None:
        """Returns the harm to one of them so far."""
        if self._process.poll() is not None:
            return f"the bystanders' process ended with {self._process.returncode}"
        harmed = [line for line in list(self._lines) if '"harmed"' in line]
        return json.loads(harmed[0])["harmed"] if harmed else None

    def end(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(6 * PATIENCE_S)
        self._reader.join(PATIENCE_S)
        accounts = [line for line in self._lines if '"confirmed"' in line]
        return json.loads(accounts[-1]) if accounts else {"failures": ["the bystanders gave no account"]}

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def main() -> None:
    told = json.loads(sys.argv[1])
    bystanders = Bystanders([Address(**one) for one in told["addresses"]], told["data_urls"], told["pids"])
    print(json.dumps(bystanders.run(sys.stdin.read)), flush=True)


if __name__ == "__main__":
    main()
