"""The roles of a broker, and which may follow which. The diagram in docs/replication.md is drawn from this table."""

import enum
from typing import Final


class Role(enum.Enum):
    RECOVERING = "recovering"
    """Its store is being read; it ignores messages."""
    LEARNER = "learner"
    """Gets the log, and is never a candidate. Its store is empty or in doubt, or it is not among the voters."""
    BACKUP = "backup"
    """A voter that follows a root, or waits for one."""
    CANDIDATE = "candidate"
    """Requests votes, first without consequences, then in a term of its own."""
    ROOT = "root"
    """Orders all changes."""
    OBSERVER = "observer"
    """A secondary: gets the log, never votes, never counts."""


TRANSITIONS: Final[dict[Role, dict[Role, str]]] = {
    Role.RECOVERING: {
        Role.BACKUP: "the store is complete, and names this broker as a voter",
        Role.LEARNER: "the store is empty or in doubt, or names other voters",
        Role.OBSERVER: "the broker is a secondary",
    },
    Role.LEARNER: {
        Role.BACKUP: "admitted by a root, and among the voters",
        Role.CANDIDATE: "an operator promoted it",
    },
    Role.BACKUP: {
        Role.CANDIDATE: "no contact to a root in time, or the root hands over",
        Role.LEARNER: "no longer among the voters, or behind a new epoch",
    },
    Role.CANDIDATE: {
        Role.ROOT: "a majority of the voters voted for it",
        Role.BACKUP: "another broker is root, or no candidate won in time",
        Role.LEARNER: "no longer among the voters, or behind a new epoch",
    },
    Role.ROOT: {
        Role.BACKUP: "stepped down, or observed a newer term",
        Role.LEARNER: "no longer among the voters, or behind a new epoch",
    },
    Role.OBSERVER: {},
}


def is_legal(old: Role, new: Role) -> bool:
    return new in TRANSITIONS[old]
