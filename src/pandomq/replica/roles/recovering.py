"""A broker whose store is being read. It ignores messages and sends none (R6): it does not know yet what it sent
before."""

from pandomq.replica.roles.handlers import Handlers
from pandomq.replica.roles.transitions import Role


class Recovering(Handlers):
    role = Role.RECOVERING
