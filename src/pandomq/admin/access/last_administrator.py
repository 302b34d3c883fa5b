"""Protects the last administrator from removal by mistake: without one, no user could create one over HTTP.

A login by a key (`key_login`) can restore access.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pandomq.admin.access.identity import ADMINISTRATOR
from pandomq.admin.refusals import bad_request

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall


def administrates(tags: Iterable[str], password_hash: str) -> bool:
    """Whether a user with these can log in over HTTP as an administrator."""
    return ADMINISTRATOR in tags and bool(password_hash)


def check_left(call: HttpCall, gone: Iterable[str], new: Iterable[str] = ()) -> None:
    """Raises Refusal (400) if no administrator is left without those who are removed, unless the query forces it."""
    present = {view.name for view in call.views.users() if administrates(view.tags, view.password_hash)}
    if present and not (present - set(gone)) | set(new) and not call.flag("force"):
        shown = ", ".join(f"'{name}'" for name in sorted(present))
        raise bad_request(
            f"without {shown}, no administrator would be left: add another one first, or force the change with "
            "`pandomq users delete` or `pandomq users tags` and --force, over HTTP with ?force=true"
        )
