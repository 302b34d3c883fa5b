"""A secondary: it takes the log, and never votes."""

from pandomq.replica.roles.follower import Follower
from pandomq.replica.roles.transitions import Role


class Observer(Follower):
    role = Role.OBSERVER
