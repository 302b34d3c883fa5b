"""The figures of clusters follow from samples: the time at which a follower has caught up, and the text of the page."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from pandomq.bench import process
from pandomq.bench.client.stride import DeliveryCounter
from pandomq.bench.client.wire import BrokerRefused
from tests.integration.waiting import wait_until
from tests.unit.bench import streams
from tools.compare.clusters import faults, works
from tools.compare.clusters.account import Account, Numbers
from tools.compare.clusters.catch_up import Sample, summary
from tools.compare.clusters.comparison import ClusterComparison
from tools.compare.clusters.disks import Disk
from tools.compare.clusters.member import Member
from tools.compare.clusters.page import section
from tools.compare.clusters.pando import PandoCluster
from tools.compare.clusters.places import Place
from tools.compare.clusters.rabbit import RabbitCluster
from tools.compare.clusters.targets import targets
from tools.compare.peers.ledger import FAST, RABBITMQ, Ledger
from tools.compare.peers.machine import this_machine
from tools.compare.peers.works import RATE

KIB = 2**10


def samples(*received: tuple[int, int]) -> list[Sample]:
    """Received MiB, one pair for each half second; 100 messages flow meanwhile."""
    return [
        Sample(number / 2, 100 * number, one * KIB * KIB, other * KIB * KIB)
        for number, (one, other) in enumerate(received)
    ]


def test_a_summary_counts_what_was_sent_beyond_what_is_new_since_it_joined() -> None:
    # In the first half second it starts, and the third gets 70 MiB alone: missed, too.
    found = summary(400.0, 300.0, -500 * KIB * KIB, samples((50, 0), (51, 70), (900, 100), (1550, 400)))
    assert found.meanwhile_rate == 200.0
    assert found.missed_bytes == 570 * KIB * KIB
    assert found.sent_bytes == (1499 - 330) * KIB * KIB
    assert found.seconds == 1.5


def test_numbers_are_read_from_bodies_and_lost_ones_void_a_trial() -> None:
    numbers = Numbers(16)
    stream = bytearray(b"".join(streams.delivery(tag, (tag * 7).to_bytes(8) + bytes(8)) for tag in range(1, 5)))
    counter = DeliveryCounter()
    counter.count(stream, 0, len(stream))
    numbers.look(stream, counter.spans)
    counter.count(stream, 0, 0)
    assert numbers.seen == {7, 14, 21, 28}
    assert numbers.deliveries == 4
    Account(confirmed=4, lost=0, duplicates=2).insist()
    with pytest.raises(BrokerRefused, match="1 of 4 confirmed messages are lost"):
        Account(confirmed=4, lost=1, duplicates=0).insist()


def comparison() -> ClusterComparison:
    speed, pauses = Ledger(rounds=1), Ledger(rounds=1)
    for system, rate, pause in ((RABBITMQ, 1000.0, 12.0), (FAST, 6000.0, 0.4)):
        speed.note(works.THROUGHPUT_SUBJECT, system, RATE, rate)
        speed.note(works.CATCH_UP_SUBJECT, system, works.SHARE_UNIT, 0.5)
        speed.note(works.CATCH_UP_SUBJECT, system, works.MISSED_UNIT, 1000.0)
        speed.note(works.CATCH_UP_SUBJECT, system, works.SENT_UNIT, 1100.0)
        pauses.note(faults.KILL.subject, system, works.PAUSE_UNIT, pause)
    pauses.note_error(faults.CUT.subject, FAST, works.PAUSE_UNIT, "not possible on this machine: it needs root")
    return ClusterComparison(
        day="2026-01-02",
        minutes=19.0,
        machine=this_machine(),
        versions={RABBITMQ: "RabbitMQ 3.10.8", FAST: "PandoMQ 0.1"},
        scale=works.FULL,
        speed=speed,
        faults=pauses,
        others_share=0.01,
    )


def test_targets_of_clusters_are_met_missed_or_not_measured() -> None:
    found = {target.name: target for target in targets(comparison())}
    assert found[works.THROUGHPUT_SUBJECT].measured == 6.0
    assert found[works.THROUGHPUT_SUBJECT].met
    assert found[f"{faults.KILL.subject}: no confirm for"].met
    assert found[f"{faults.FREEZE.subject}: no confirm for"].measured is None
    assert not found[f"{works.CATCH_UP_SUBJECT}: throughput meanwhile"].met
    assert found[f"{works.CATCH_UP_SUBJECT}: bytes sent to it"].measured == pytest.approx(1.1)


def test_the_section_is_written_from_the_json_alone() -> None:
    original = comparison()
    again = msgspec.json.decode(msgspec.json.encode(original), type=ClusterComparison)
    text = section(again)
    assert text == section(original)
    assert f"| {faults.KILL.subject} | 12.00 | 0.40 | 12.00 | 0.40 |" in text
    assert "not possible on this machine: it needs root" in text
    assert "Other programs" not in text
    original.others_share = 0.3
    assert "Other programs used 30% of the machine" in section(original)


def members(directory: Path) -> list[Member]:
    return [Member(f"n{number}", Place(), Disk(directory / f"n{number}")) for number in (1, 2, 3)]


def test_brokers_of_ours_are_started_with_a_configuration_each(tmp_path: Path) -> None:
    cluster = PandoCluster(members(tmp_path))
    _, second, _ = cluster.members
    command, variables = cluster.command(second)
    configuration = Path(command[-1]).read_text()
    assert f'listen = "{second.place.amqp}"' in configuration
    assert all(f'"{member.name}={member.place.amqp}"' in configuration for member in cluster.members)
    assert (tmp_path / "n2" / "cluster.key").stat().st_mode & 0o077 == 0
    assert variables["PANDOMQ_PLAIN"] == ""


def test_nodes_of_rabbitmq_know_each_other(tmp_path: Path) -> None:
    cluster = RabbitCluster(members(tmp_path))
    _, variables = cluster.command(cluster.members[0])
    configuration = Path(variables["RABBITMQ_CONFIG_FILE"]).read_text()
    assert "cluster_formation.classic_config.nodes.3 = n3@127.0.0.1" in configuration
    assert [cluster.leader(turn).name for turn in range(4)] == ["n1", "n2", "n3", "n1"]


def test_a_member_is_frozen_thawed_and_killed_with_all_its_processes(tmp_path: Path) -> None:
    member = Member("n1", Place(), Disk(tmp_path / "n1"))
    member.launch(["sh", "-c", "echo hello; sleep 1000 & wait"], {})
    assert member.alive
    group = member.pid
    assert group in member.pids
    member.freeze()
    assert member.disturbed
    member.thaw()
    assert not member.disturbed
    member.kill()
    assert not member.alive
    # The system may take a moment to end all of them.
    wait_until(lambda: all(_is_dead(pid) for pid in process.group_pids(group)), "all processes of the group to end")
    member.launch(["sh", "-c", "exit 3"], {})
    member.terminate()
    assert not member.alive


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_a_group_of_processes_is_found() -> None:
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as sleeping:
        try:
            assert process.group_pids(sleeping.pid) == [sleeping.pid]
            assert sleeping.pid not in process.group_pids(os.getpgrp())
        finally:
            sleeping.kill()
