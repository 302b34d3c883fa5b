"""Whether a store may have lost data that it reported as stored.

Unless every entry is synced, writes since the last sync survive a crash of the process but not of the machine. So a
store notes the boot id of the machine under which it is written. If it is opened under another boot id it is in doubt;
it is also in doubt if the boot id is unknown. A clean shutdown syncs everything and clears the note. A store that was
repaired or restored is in doubt as well, and so is one whose damage has destroyed the record of where its log ended:
other brokers may remember more of it than it does.

The doubt is cleared when the owner, which gets it at the opening, has saved its conclusions.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pandomq.journal.hard_state import StoreState
from pandomq.journal.limits import Fsync

UNKNOWN: Final = "unknown"


def at_opening(state: StoreState, fsync: Fsync, boot_id: str) -> StoreState:
    """`boot_id` is empty if it is unknown."""
    lost = state.unsynced_boot not in ("", boot_id)
    noted = "" if fsync is Fsync.ALWAYS else boot_id or UNKNOWN
    return msgspec.structs.replace(state, unsynced_boot=noted, doubtful=state.doubtful or lost)


def at_closing(state: StoreState) -> StoreState:
    return msgspec.structs.replace(state, unsynced_boot="")
