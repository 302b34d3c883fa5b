"""Clients in worlds whose time leaps: what they rely on may be over afterwards, but not before."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from pandomq import data_form
from pandomq.broker.limits import TableLimits
from pandomq.methods import BasicAck, ConfirmSelectOk, QueueDeclareOk, QueuePurgeOk
from pandomq.node.settings import NodeSettings
from pandomq.sim.agenda import Agenda
from pandomq.sim.clients.administration.policies import LONG_TTL_MS, MESSAGES, PATIENCE_MS, PolicyGroup, Rule, Tenant
from pandomq.sim.clients.data_port.stager import Stager
from pandomq.sim.facts import Facts
from pandomq.sim.features.hours import NOTICED_MS, HoursFeature
from pandomq.sim.ledger import BrokenPromise, WorldLedger
from pandomq.sim.queues import STREAM

HOUR_MS = 3_600_000
LEFT_ALONE_MS = 1_000


def scene_of(agenda: Agenda) -> Any:
    settings = NodeSettings(name="n1", tables=TableLimits(staged_left_alone_ms=LEFT_ALONE_MS))
    return SimpleNamespace(
        agenda=agenda,
        ledger=WorldLedger(),
        observer=SimpleNamespace(published=lambda message: None),
        machines=[SimpleNamespace(settings=settings, name="n1")],
        random_of=Random,
        trace=SimpleNamespace(detailed=False, detail=lambda *_: None),
    )


def leap(scene: Any, span_ms: int) -> None:
    scene.agenda.leap(span_ms)
    scene.ledger.leapt_ms += span_ms


@pytest.mark.parametrize(("elapsed_ms", "legal"), [(HOUR_MS, True), (LEFT_ALONE_MS // 2, False)])
def test_an_attempt_may_be_gone_only_if_it_was_left_alone_for_its_time(elapsed_ms: int, legal: bool) -> None:
    scene = scene_of(Agenda())
    stager: Any = Stager(scene, "stager", STREAM, 1)
    wire: Any = SimpleNamespace(ask=lambda *_, **__: None, alive=False)
    stager._wire = wire
    stager.begin()
    stager.answered(wire, {"decided": False}, b"")
    stager.ask("stage")
    leap(scene, elapsed_ms)
    refusal = {"error": data_form.PRECONDITION_FAILED, "text": "expected part 1"}
    if legal:
        stager.answered(wire, refusal, b"")
    else:
        with pytest.raises(BrokenPromise, match="staged"):
            stager.answered(wire, refusal, b"")


@pytest.mark.parametrize(
    ("leapt_ms", "left", "legal"),
    [(0, MESSAGES, True), (0, 0, False), (2 * HOUR_MS, 0, True), (2 * HOUR_MS, MESSAGES, True), (60_000, 0, False)],
)
def test_a_tenant_counts_what_may_have_expired_while_time_leapt(leapt_ms: int, left: int, legal: bool) -> None:
    scene = scene_of(Agenda())
    facts: Facts[PolicyGroup] = Facts(scene.agenda)
    rule = Rule("one", "^p-", 0, {"message-ttl": LONG_TTL_MS}, operator=False)
    facts.settle(facts.new("p-0-"), PolicyGroup({"one": rule}))
    tenant: Any = Tenant(scene, "tenant", facts, None)
    tenant.random = Random(3)
    tenant.cable = SimpleNamespace(send=lambda data: None, machine=scene.machines[0])
    tenant.ready = True
    tenant.opened()
    tenant.method(ConfirmSelectOk(), b"")
    tenant.told(next(iter(facts)))
    tenant.method(QueueDeclareOk("any", 0, 0), b"")
    tenant.method(QueuePurgeOk(0), b"")
    leap(scene, leapt_ms)
    tenant.method(BasicAck(MESSAGES, multiple=True), b"")
    scene.agenda.run(scene.agenda.now_ms + PATIENCE_MS)
    if legal:
        tenant.method(QueueDeclareOk("any", left, 0), b"")
    else:
        with pytest.raises(BrokenPromise, match="left in"):
            tenant.method(QueueDeclareOk("any", left, 0), b"")


def test_after_the_last_standstill_the_world_waits_until_brokers_have_noticed_it() -> None:
    world: Any = scene_of(Agenda())
    world.machine = SimpleNamespace(serving=True)
    world.machines = []
    world.scene = SimpleNamespace(secondaries=[])
    world.trace = SimpleNamespace(say=lambda *_: None)
    feature: Any = HoursFeature.__new__(HoursFeature)
    feature.world, feature.random, feature._last_leap_done = world, Random(1), False
    feature._checker = SimpleNamespace(leapt=lambda span_ms: None)
    assert not feature.healed()
    leapt_ms = world.agenda.now_ms
    assert world.ledger.last_leap_ms == leapt_ms > 0
    world.agenda.run(leapt_ms + NOTICED_MS - 1)
    assert not feature.healed()
    world.agenda.run(leapt_ms + NOTICED_MS)
    assert feature.healed()
    assert world.ledger.last_leap_ms == leapt_ms, "it happens once"
