"""A secondary: takes the log, and has no say in anything."""

from pandomq.replica.roles.follower import Follower
from pandomq.replica.roles.transitions import Role


class Observer(Follower):
    role = Role.OBSERVER
