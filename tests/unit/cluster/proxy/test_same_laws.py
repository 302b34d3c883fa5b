"""The tests of a broker also hold through a front: the same tests, with clients of a front (R12).

Tests that inspect the broker's state, or rely on several answers in one commit of a slow log, are left out: on a front
a client's calls go to the root one at a time.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from pandomq.broker.limits import BrokerLimits
from tests.unit.broker import policy_scene
from tests.unit.broker.conversation import Peer, World
from tests.unit.cluster.proxy.pipe_world import Cluster

SUBJECTS = (
    "access",
    "channels",
    "consumers",
    "dead_letters",
    "exchange_methods",
    "get_and_settle",
    "hostile_methods",
    "permissions",
    "policies",
    "publishing",
    "queue_declare",
    "queue_methods",
    "quotas",
    "reply_to",
    "time",
    "transactions",
    "users",
    "vhosts",
)
MODULES = {subject: import_module(f"tests.unit.broker.test_{subject}") for subject in SUBJECTS}
INSIDE = {
    "test_a_client_that_leaves_gives_everything_back",
    "test_a_commit_is_one_entry_of_the_log",
    "test_a_message_comes_back_before_the_end_of_the_connection_in_the_same_read",
    "test_a_private_queue_expires_too",
    "test_a_queue_that_was_deleted_meanwhile_gets_nothing",
    "test_a_second_put_changes_its_own_fields_and_nothing_else",
    "test_a_user_who_comes_back_is_a_new_one",
    "test_an_auto_delete_queue_goes_with_its_consumers_channel_and_connection",
    "test_channels_of_a_user",
    "test_consumers_are_counted_however_they_end",
    "test_dead_letters_are_part_of_the_transaction",
    "test_deadlines_of_deleted_queues_are_not_kept_for_ever",
    "test_delayed_messages_wait_for_the_commit_and_then_for_their_time",
    "test_private_queues_follow_policies",
    "test_recover_leaves_the_messages_that_the_transaction_settled",
    "test_reply_queues_are_in_no_listing",
    "test_settlements_happen_with_the_commit",
    "test_ten_thousand_queues_follow_quickly",
    "test_the_plan_of_a_route_is_remembered",
    "test_a_connection_from_inside_the_broker_is_not_counted",
    "test_with_a_user_goes_all_it_had",
}


class ProxiedWorld(World):
    """The root; but whoever connects does so to a front."""

    def __init__(self, *, late: bool = False, limits: BrokerLimits | None = None, seed: int = 1) -> None:
        super().__init__(late=late, limits=limits, seed=seed)
        self.cluster = Cluster(root=self)
        self.closed = self.cluster.front.closed

    def connect(self, **wishes: Any) -> Peer:
        self.cluster.settle()
        return self.cluster.front.connect(**wishes)

    def administer(self, *commands: Any) -> Any:
        fault = super().administer(*commands)
        self.cluster.settle()
        return fault

    def commit(self, index: int | None = None) -> None:
        super().commit(index)
        if self.late:
            self.cluster.settle()

    def pass_time(self, milliseconds: int) -> None:
        self.cluster.pass_time(milliseconds)


@pytest.fixture(autouse=True)
def proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (*MODULES.values(), policy_scene):
        if hasattr(module, "World"):
            monkeypatch.setattr(module, "World", ProxiedWorld)


for _subject, _module in MODULES.items():
    for _name, _test in vars(_module).items():
        if _name.startswith("test_") and _name not in INSIDE:
            globals()[f"{_name}_of_{_subject}"] = _test
