"""Chooses among the roles that take the log from a root."""

from __future__ import annotations

from pandomq.replica.core import Core
from pandomq.replica.members import votes
from pandomq.replica.roles.backup import Backup
from pandomq.replica.roles.handlers import Handlers
from pandomq.replica.roles.learner import Learner
from pandomq.replica.roles.observer import Observer
from pandomq.replica.roles.transitions import Role


def follower_role(core: Core) -> Role:
    if core.observer:
        return Role.OBSERVER
    in_doubt = core.record.joining or core.emptying
    if in_doubt or not core.may_be_needed() or not votes.is_of_epoch(core.end, core.state.epoch):
        return Role.LEARNER
    return Role.BACKUP


def new_follower(core: Core, rest_ms: int = 0) -> Handlers:
    match follower_role(core):
        case Role.OBSERVER:
            return Observer(core)
        case Role.BACKUP:
            return Backup(core, rest_ms=rest_ms)
        case _:
            return Learner(core)


def settle(core: Core) -> None:
    """To be called when members, epochs or doubts may have changed."""
    if core.handlers.role in (Role.BACKUP, Role.LEARNER) and core.handlers.role is not follower_role(core):
        core.become(new_follower(core))
