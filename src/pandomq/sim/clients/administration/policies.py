"""Policies that are set, replaced by weaker ones and deleted, and clients that check whether queues follow them.

The `PolicyMaker` changes the policies of one group of queues at a time. The names of a group's queues have a common
prefix, so a change in doubt concerns no other group. A `Tenant` has queues of the group: a shared one at the root, and
a private one on its own broker. It fills a queue and counts the messages that are left. The effect of the policies is
computed here a second time, in the simplest way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pandomq.broker.log.commands import AdministrativeCommand, DeletePolicy, PutPolicy
from pandomq.methods import ConfirmSelect, ConfirmSelectOk, QueueDeclare, QueueDeclareOk, QueuePurge, QueuePurgeOk
from pandomq.sim.clients.administration.administrator import Administrator
from pandomq.sim.clients.administration.prober import Course, Prober, ProbeReply
from pandomq.sim.facts import Assumption, Fact, Facts
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.broker.queues.queue_settings import QueueSettings
    from pandomq.sim.scene import Scene

PROMISE: Final = "policies are in force everywhere"
PREFIX: Final = "p-"
MESSAGES: Final = 6
SHORT_TTL_MS: Final = 40
LONG_TTL_MS: Final = 3_600_000
PATIENCE_MS: Final = 60
"""The time for which a trial waits for messages that must not expire."""
NAMES: Final = ("one", "two")
OPERATORS: Final = ("op-one", "op-two")
DELETE_CHANCE: Final = 0.25
MERGED: Final = ("max-length", "message-ttl")
"""For these settings the smaller one of two values applies."""

Definition = dict[str, Any]

DEFINITIONS: Final[tuple[Definition, ...]] = (
    {"max-length": 2},
    {"max-length": 4},
    {"max-length": 1_000},
    {"max-length": 3, "overflow": "reject-publish"},
    {"message-ttl": SHORT_TTL_MS},
    {"message-ttl": LONG_TTL_MS},
    {"dead-letter-exchange": "p-dead", "dead-letter-routing-key": "any"},
    {"max-length": 5, "message-ttl": LONG_TTL_MS, "dead-letter-exchange": "p-dead"},
)
OPERATORS_DEFINITIONS: Final[tuple[Definition, ...]] = (
    {"max-length": 1},
    {"max-length": 3},
    {"max-length": 2_000},
    {"message-ttl": SHORT_TTL_MS},
    {"max-length": 5, "overflow": "reject-publish"},
)


class Rule(msgspec.Struct, frozen=True):
    name: str
    pattern: str
    priority: int
    definition: Definition
    operator: bool


class PolicyGroup(msgspec.Struct, frozen=True):
    """The policies of a group of queues."""

    rules: dict[str, Rule] = {}

    def after(self, name: str, rule: Rule | None) -> PolicyGroup:
        rules = {key: value for key, value in self.rules.items() if key != name}
        return PolicyGroup(rules if rule is None else {**rules, name: rule})

    def definition(self, queue: str) -> Definition:
        """Returns the settings of a queue without arguments."""
        rules = [rule for rule in self.rules.values() if re.search(rule.pattern, queue)]
        chosen = [
            min(those, key=lambda rule: (-rule.priority, rule.name)).definition
            for those in ([rule for rule in rules if rule.operator is operator] for operator in (False, True))
            if those
        ]
        merged: Definition = {}
        for definition in chosen:
            merged |= {
                key: min(value, merged[key]) if key in MERGED and key in merged else value
                for key, value in definition.items()
            }
        return merged


def seen(settings: QueueSettings) -> Definition:
    """Returns the settings of a queue in the broker."""
    found = {
        "max-length": settings.length_max,
        "message-ttl": settings.ttl_ms,
        "dead-letter-exchange": settings.dead_letter_exchange,
        "dead-letter-routing-key": settings.dead_letter_key,
        "overflow": settings.overflow,
    }
    return {key: value for key, value in found.items() if value not in (-1, None, "drop-head")}


class PolicyMaker(Administrator[PolicyGroup]):
    def draw(self) -> tuple[AdministrativeCommand, Fact[PolicyGroup], PolicyGroup]:
        random = self.random
        fact = next(reversed(self.facts.certain()), None)
        if fact is None:
            fact = self.facts.new(f"{PREFIX}{len(self.facts)}-")
        group = fact.value or PolicyGroup()
        if group.rules and random.random() < DELETE_CHANCE:
            rule = group.rules[random.choice(sorted(group.rules))]
            return DeletePolicy("/", rule.name, rule.operator), fact, group.after(rule.name, None)
        operator = random.random() < 0.35
        name = f"{fact.name}{random.choice(OPERATORS if operator else NAMES)}"
        pattern = f"^{fact.name}{random.choice(('', '', 'shared'))}"
        definition = random.choice(OPERATORS_DEFINITIONS if operator else DEFINITIONS)
        rule = Rule(name, pattern, random.randrange(3), definition, operator)
        command = PutPolicy("/", name, pattern, "queues", rule.priority, msgspec.json.encode(definition), operator)
        return command, fact, group.after(name, rule)


class Tenant(Prober):
    def __init__(self, scene: Scene, name: str, facts: Facts[PolicyGroup], place: str | None) -> None:
        super().__init__(scene, name, facts)
        self.place = place
        self._connections = 0

    def disconnected(self) -> None:
        super().disconnected()
        # Publishes of its last connection may still arrive at its queues, so it uses other queues.
        self._connections += 1

    def prepare(self) -> Course:
        self.send(ConfirmSelect())
        yield from self.await_answer(ConfirmSelectOk)

    def course(self, assumption: Assumption[PolicyGroup]) -> Course:
        shared = self.random.random() < 0.5
        queue = f"{assumption.fact.name}{'shared' if shared else 'private'}-{self.name}-{self._connections}"
        self.send(QueueDeclare(queue, durable=shared, exclusive=not shared))
        yield from self.await_answer(QueueDeclareOk)
        self.send(QueuePurge(queue))
        yield from self.await_answer(QueuePurgeOk)
        leapt_ms = self.scene.ledger.leapt_ms
        for _ in range(MESSAGES):
            self.publish("", queue, b"trial")
        result = yield from self.await_confirms(MESSAGES)
        if result.closed is not None or assumption.value is None:
            raise BrokenPromise("legal requests are served", f"{self.name}'s channel was closed: {result.closed}")
        definition = assumption.value.definition(queue)
        if definition.get("message-ttl") == SHORT_TTL_MS:
            # The exact time of their expiration is not promised.
            return
        if self.random.random() < 0.3:
            self._wake_later()
            yield
        self.send(QueueDeclare(queue, passive=True))
        answer, _ = yield from self.await_answer(QueueDeclareOk)
        assert isinstance(answer, QueueDeclareOk)
        expected = min(MESSAGES, definition.get("max-length", MESSAGES))
        # Everything may have stood still for longer than the messages' time to live; the root's clock may be fast.
        passed_ms = (self.scene.ledger.leapt_ms - leapt_ms) * 11 // 10
        may_expire = passed_ms > definition.get("message-ttl", passed_ms)
        fits = answer.message_count <= expected if may_expire else answer.message_count == expected
        if assumption.holds and not fits:
            self._break(assumption, f"{answer.message_count} of {MESSAGES} messages are left in {queue}", definition)
        if assumption.holds and result.nacked and definition.get("overflow", "drop-head") == "drop-head":
            self._break(assumption, f"{result.nacked} messages were refused by {queue}", definition)

    def _wake_later(self) -> None:
        course = self._course

        def wake() -> None:
            if self._course is course and course is not None and self.ready:
                self._go_on(course, ProbeReply(QueuePurgeOk(0), b""))

        self.scene.agenda.after(PATIENCE_MS, wake)

    def _break(self, assumption: Assumption[PolicyGroup], what: str, definition: Definition) -> None:
        where = "nowhere" if self.cable is None else self.cable.machine.name
        raise BrokenPromise(PROMISE, f"at {where} {what}, though {definition} is in force: {assumption.value}")
