"""Whether a store may have lost what it said it had.

Unless every entry is synced, what was written since the last sync outlives the process but not the machine. So a store
notes under which boot of the machine it is being written; found under another one it is in doubt, and so it is if
nobody can tell which boot this is. A clean end syncs everything and takes the note back. The same doubt is cast on a
store that was repaired or restored, and on one whose damage has taken the account of where its log ended: others may
remember more of it than it does.

The doubt is taken back when the owner, who was told, has saved what it makes of it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pandomq.journal.hard_state import StoreState
from pandomq.journal.limits import Fsync

UNKNOWN: Final = "unknown"


def at_opening(state: StoreState, fsync: Fsync, boot_id: str) -> StoreState:
    """`boot_id` is empty if it is not known."""
    lost = state.unsynced_boot not in ("", boot_id)
    noted = "" if fsync is Fsync.ALWAYS else boot_id or UNKNOWN
    return msgspec.structs.replace(state, unsynced_boot=noted, doubtful=state.doubtful or lost)


def at_closing(state: StoreState) -> StoreState:
    return msgspec.structs.replace(state, unsynced_boot="")
