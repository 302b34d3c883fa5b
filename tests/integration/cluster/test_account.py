"""The account itself: it balances without errors, and names each promise that was broken."""

from __future__ import annotations

from .account import Ledger, TransactionLedger


def sent(count: int) -> Ledger:
    ledger = Ledger("q")
    for _ in range(count):
        ledger.confirm(ledger.send("p"))
    return ledger


def test_an_account_without_errors_balances() -> None:
    ledger = sent(3)
    ledger.receive("p:0", redelivered=False)
    ledger.acked.add("p:0")
    ledger.proven.add("p:0")
    ledger.receive("p:1", redelivered=False)
    ledger.check_left([("p:1", True), ("p:2", False)])
    assert ledger.broken == []
    assert ledger.redeliveries == 1


def test_messages_in_doubt_may_be_there_or_not() -> None:
    ledger = sent(1)
    for _ in range(2):
        ledger.send("p")
    ledger.check_left([("p:0", False), ("p:2", False)])
    assert ledger.broken == []


def test_a_loss() -> None:
    ledger = sent(2)
    ledger.receive("p:0", redelivered=False)
    ledger.check_left([("p:1", False)])
    assert ledger.broken == ["p:0 was confirmed and is lost"]


def test_an_acked_message_that_comes_back() -> None:
    ledger = sent(1)
    ledger.receive("p:0", redelivered=False)
    ledger.acked.add("p:0")
    ledger.receive("p:0", redelivered=True)
    assert ledger.broken == []
    ledger.proven.add("p:0")
    ledger.receive("p:0", redelivered=True)
    assert ledger.broken == ["p:0 came back after its ack was proven"]


def test_a_redelivery_in_silence() -> None:
    ledger = sent(1)
    for _ in range(2):
        ledger.receive("p:0", redelivered=False)
    assert ledger.broken == ["p:0 was delivered again and does not say so"]


def test_messages_of_a_connection_that_was_given_up_may_come_late() -> None:
    ledger = sent(4)
    ledger.give_up(1)
    ledger.receive("p:3", redelivered=False)
    ledger.receive("p:0", redelivered=True)
    assert ledger.broken == []
    ledger.receive("p:1", redelivered=True)
    assert ledger.broken == ["p:1 was first delivered after 3"]


def test_another_order() -> None:
    ledger = sent(2)
    ledger.receive("p:1", redelivered=False)
    ledger.receive("p:0", redelivered=True)
    assert ledger.broken == ["p:0 was first delivered after 1"]


def test_a_message_twice_or_from_nowhere() -> None:
    ledger = sent(1)
    ledger.check_left([("p:0", False), ("p:0", True), ("p:7", False)])
    assert ledger.broken == ["p:7 was never sent", "p:0 is in the queue twice"]


def test_transactions() -> None:
    ledger = TransactionLedger(committed={"t0", "t1"}, given={"m0", "m1", "m2"}, moved={"m1"})
    ledger.check_whole(["t0", "t0", "t2", "t2"], size=2)
    assert ledger.broken == ["t1 was committed and is lost"]
    ledger.broken.clear()
    ledger.check_whole(["t0", "t0", "t1", "t1", "t2"], size=2)
    assert ledger.broken == ["1 of t2's 2 messages"]
    ledger.broken.clear()
    ledger.check_moved(["m0"], ["m1", "m2"], ["m1"])
    assert ledger.broken == ["m2 is in source, rejected and moved (0, 1, 0) times"]
    ledger.broken.clear()
    ledger.check_moved(["m0", "m1"], ["m2"], ["m2"])
    assert ledger.broken == ["m1 was moved and is still in the source"]
