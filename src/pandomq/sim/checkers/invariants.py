"""The invariants of a broker at any time: its own, the journal's indexes, bounds on memory and disk."""

from __future__ import annotations

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, SentMessage, WorldLedger
from pandomq.sim.machine import Machine

PROMISE = "invariants"
STEPS_BETWEEN = 64
DISK_BYTES_MAX = 8 * 2**20
DROP_HEAD = "drop-head"


class Invariants(Checker):
    def __init__(self, ledger: WorldLedger) -> None:
        super().__init__(ledger)
        self._promised_ms = 0
        """The latest cluster time that the log must remember."""

    def confirmed(self, message: SentMessage, machine: Machine) -> None:
        logged = message.persistent and any(self.ledger.kinds[queue].is_logged for queue in message.queues)
        if logged and message.life == machine.life:
            self._promised_ms = max(self._promised_ms, message.sent_ms)

    def opened(self, machine: Machine) -> None:
        assert machine.node is not None
        if machine.node.last_ms < self._promised_ms:
            raise BrokenPromise(
                PROMISE, f"the cluster's time went back to {machine.node.last_ms} from {self._promised_ms}"
            )

    def stepped(self, machine: Machine) -> None:
        node = machine.node
        if node is None or machine.steps % STEPS_BETWEEN or not machine.serving:
            return
        broker = node.broker
        unacked = ready = 0
        for vhost in broker.state.vhosts.values():
            for queue in (*vhost.queues.values(), *vhost.inner_queues.values()):
                kernel_queue = queue.kernel
                ready += kernel_queue.ready_count
                unacked += kernel_queue.unacked_count
                length_max = queue.settings.length_max
                # A limit drops messages at the end of the batch at the latest, unless the messages are on the disk:
                # then with the batch after they were read. A queue that refuses publishes takes back what was
                # delivered, whatever its length is by then.
                drops = queue.settings.overflow == DROP_HEAD
                surplus = drops and kernel_queue.ready_count - kernel_queue.unacked_count > length_max >= 0
                if surplus and not kernel_queue.head_missing and not broker.active:
                    raise BrokenPromise(PROMISE, f"{queue.name} holds {kernel_queue.ready_count}, limit {length_max}")
            # Delayed messages are in no queue.
            waiting = (exchange.waiting for exchange in vhost.router.exchanges.values())
            ready += sum(delayed.kernel.ready_count for delayed in waiting if delayed is not None)
        held = sum(channel.kernel.unacked_count for client in broker.clients for channel in client.channels.values())
        if held < unacked:
            raise BrokenPromise(PROMISE, f"queues count {unacked} unacked messages, channels {held}")
        if not 0 <= broker.engine.held_messages <= ready + held + len(broker.admissions) * 1000:
            raise BrokenPromise(PROMISE, f"{broker.engine.held_messages} messages are held, {ready} + {held} are known")
        broker.state.attempts.check(broker.state.vhosts.values())
        check = getattr(broker.engine, "check", None)
        if check is not None:
            check()

    def finished(self, machine: Machine) -> None:
        size_bytes = sum(machine.disk.sizes().values())
        if size_bytes > DISK_BYTES_MAX:
            raise BrokenPromise(PROMISE, f"empty queues take {size_bytes} bytes of the disk")
