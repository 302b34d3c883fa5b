"""The base class of all sections of `pandomq.toml`, and the marks that a key may have besides its type and bounds.

Further marks: `option` is the key's option of `pandomq start`; `share_of_memory` permits a share of the machine's
memory as a size; `default` is a text that replaces the field's default.
"""

from __future__ import annotations

from typing import Final

import msgspec

SECRET: Final = {"secret": True}
"""Never shown; may also be given as a file, by the same key with `_file` at its end."""
PRIVATE: Final = {**SECRET, "private": True}
"""And such a file must not be open to everybody."""
ADDRESS: Final = {"address": True}


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass
