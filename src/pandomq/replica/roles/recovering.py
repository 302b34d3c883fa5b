"""A broker whose store is being read. It hears nothing and says nothing (R6): it does not know yet what it has said."""

from pandomq.replica.roles.handlers import Handlers
from pandomq.replica.roles.transitions import Role


class Recovering(Handlers):
    role = Role.RECOVERING
