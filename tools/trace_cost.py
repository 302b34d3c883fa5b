"""Measures the cost of tracing in a broker, for a message that is published, confirmed, delivered and acked.

    python tools/trace_cost.py --time
    python tools/trace_cost.py --count
    perf stat -e instructions:u python tools/trace_cost.py --sample 0.01 --messages 200000

Two clients and a broker run in one process, without sockets and without a disk. `--time` prints the processor time, the
best of many short rounds of each sample in turn. `--count` counts instructions with callgrind, which needs no counters
of the processor and is not disturbed by other processes: one run with few messages and one with many for each sample,
the difference divided by the messages. Without either option it works and prints nothing, so that another tool can
count.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

from pandomq import kernel, methods
from pandomq.broker.broker import BatchOutcome, Broker, Input
from pandomq.broker.client import Client
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.log.commands import PutPermissions, PutTracing, PutUser
from pandomq.methods import MethodInput
from pandomq.properties import Properties, encode_header
from pandomq.wire import codec

FRAME_BYTES = 131072
BATCH = 100
BODY = b"x" * 100
FEW, MANY = 2_000, 12_000
ROUNDS, BATCHES_PER_ROUND = 200, 20
SAMPLES = (0.0, 0.001, 0.01, 0.1, 1.0)


class Bench:
    def __init__(self, sample: float) -> None:
        self.now_ms = 1_700_000_000_000
        self.index = 0
        self.acked = 0
        self.broker = Broker(
            node_name="n1",
            encode=codec.encode_frame,
            encode_payload=codec.encode_method,
            random=random.Random(1),
            limits=BrokerLimits(),
        )
        for command in (PutUser("guest", "", "scrypt", ()), PutPermissions("/", "guest", ".*", ".*", ".*")):
            self.broker.change(command)
        if sample:
            self.broker.administration.submit(PutTracing("/", sample), lambda fault: None, self.now_ms)
        self.publisher, self.consumer = self._connect(), self._connect()
        self._say(self.publisher, methods.QueueDeclare("q", durable=True), methods.ConfirmSelect())
        self._say(self.consumer, methods.BasicQos(0, 1000), methods.BasicConsume("q", "t"))
        header = encode_header(len(BODY), Properties(delivery_mode=2))
        content = codec.encode_content(1, methods.BasicPublish("", "q"), header, BODY, FRAME_BYTES)
        self.publishes = content * BATCH
        self.scanner = kernel.Scanner(FRAME_BYTES, 1 << 20)

    def _connect(self) -> Client:
        client = self.broker.connect(
            user="guest",
            vhost="/",
            peer="127.0.0.1:1",
            client_properties={},
            frame_max=FRAME_BYTES,
            channel_max=10,
            now_ms=self.now_ms,
        )
        self._say(client, methods.ChannelOpen())
        return client

    def _say(self, client: Client, *said: methods.Method) -> None:
        self._run(client, [MethodInput(1, method) for method in said])

    def _run(self, client: Client, inputs: list[Input]) -> None:
        self._finish(self.broker.handle([(client, inputs)], self.now_ms))
        while self.broker.active:
            self._finish(self.broker.handle([], self.now_ms))
        if self.broker.next_deadline_ms <= self.now_ms:
            self._finish(self.broker.tick(self.now_ms))
        for dirty in self.broker.take_dirty():
            dirty.session.take()

    def _finish(self, outcome: BatchOutcome) -> None:
        index = 0
        if outcome.proposal is not None:
            self.index += 1
            index = self.index
        self.broker.sealed(index)
        self.broker.committed(self.index)

    def batch(self) -> None:
        self._run(self.publisher, list(self.scanner.feed(self.publishes)))
        self.acked += BATCH
        ack = codec.encode_frame(1, methods.BasicAck(self.acked, multiple=True))
        self._run(self.consumer, list(self.scanner.feed(ack)))
        self.now_ms += 1


def count(sample: float, messages: int) -> int:
    """Returns the number of instructions of a process with these options."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command = [sys.executable, __file__, "--sample", str(sample), "--messages", str(messages)]
    fixed = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONMALLOC": "pymalloc"}
    counted = subprocess.run([*valgrind, *command], capture_output=True, text=True, check=True, env=fixed)
    found = re.search(r"Collected : (\d+)", counted.stderr)
    assert found is not None, counted.stderr
    return int(found[1])


def counted(sample: float) -> float:
    # The first run compiles modules that have no bytecode yet.
    few = count(sample, FEW)
    return (count(sample, MANY) - few) / (MANY - FEW)


def times() -> dict[float, float]:
    benches = {sample: Bench(sample) for sample in SAMPLES}
    best = dict.fromkeys(SAMPLES, float("inf"))
    for _ in range(ROUNDS):
        for sample, bench in benches.items():
            began_ns = time.thread_time_ns()
            for _ in range(BATCHES_PER_ROUND):
                bench.batch()
            best[sample] = min(best[sample], (time.thread_time_ns() - began_ns) / BATCHES_PER_ROUND / BATCH)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=float, default=0.0)
    parser.add_argument("--messages", type=int, default=FEW)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    if options.count or options.time:
        what = "instructions" if options.count else "nanoseconds"
        print(f"{Path(__file__).name}: {what} for a message, {BATCH} in a batch, {len(BODY)} bytes each")
        found = {sample: counted(sample) for sample in SAMPLES} if options.count else times()
        for sample, each in found.items():
            print(f"{sample:8.1%} {each:10.1f}  {each / found[0.0] - 1:+7.2%}")
        return
    bench = Bench(options.sample)
    for _ in range(options.messages // BATCH):
        bench.batch()
    assert bench.broker.engine.acked == options.messages // BATCH * BATCH


if __name__ == "__main__":
    main()
