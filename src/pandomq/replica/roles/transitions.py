"""The roles of a broker, and which may follow which. The diagram in docs/replication.md is drawn from this table."""

import enum
from typing import Final


class Role(enum.Enum):
    RECOVERING = "recovering"
    """Its store is being read; it answers nobody."""
    LEARNER = "learner"
    """Gets the log; does not stand. Its store is empty or in doubt, or it is not among the voters."""
    BACKUP = "backup"
    """A voter that follows a root, or waits for one."""
    CANDIDATE = "candidate"
    """Asks for votes, first without consequences, then in a term of its own."""
    ROOT = "root"
    """Orders all changes."""
    OBSERVER = "observer"
    """A secondary: gets the log, never votes, never counts."""


TRANSITIONS: Final[dict[Role, dict[Role, str]]] = {
    Role.RECOVERING: {
        Role.BACKUP: "the store is whole, and names this broker as a voter",
        Role.LEARNER: "the store is empty or in doubt, or names others",
        Role.OBSERVER: "it is a secondary",
    },
    Role.LEARNER: {
        Role.BACKUP: "admitted by a root, and among the voters",
        Role.CANDIDATE: "a person promoted it",
    },
    Role.BACKUP: {
        Role.CANDIDATE: "no root was heard of in time, or the root hands over",
        Role.LEARNER: "no longer among the voters, or behind a new epoch",
    },
    Role.CANDIDATE: {
        Role.ROOT: "more than half of the voters voted for it",
        Role.BACKUP: "another is root, or nobody won in time",
        Role.LEARNER: "no longer among the voters, or behind a new epoch",
    },
    Role.ROOT: {
        Role.BACKUP: "resigned, or heard of a newer term",
        Role.LEARNER: "no longer among the voters, or behind a new epoch",
    },
    Role.OBSERVER: {},
}


def is_legal(old: Role, new: Role) -> bool:
    return new in TRANSITIONS[old]
