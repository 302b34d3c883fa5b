"""The cluster: its members, its root, and the changes that an operator may make."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from typing import TYPE_CHECKING, Final

from pandomq.admin import limits
from pandomq.admin.forwarding import AnswerLost, forward, forward_to_root
from pandomq.admin.refusals import bad_request, broker_not_found
from pandomq.admin.responses import Json, Nothing, created, deleted
from pandomq.ids import NodeName
from pandomq.node.views.cluster_view import SECONDARY
from pandomq.replica.members.membership import Member
from pandomq.runtime.listen import ListenAddress

if TYPE_CHECKING:
    from starlette.responses import Response

    from pandomq.admin.call import HttpCall

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)


async def show(call: HttpCall) -> Json:
    """The output of `pandomq status --json`."""
    return Json(call.views.cluster())


async def list_members(call: HttpCall) -> Json:
    return Json(call.views.cluster().members)


async def put_member(call: HttpCall) -> Nothing:
    """Makes a broker a primary: it must be connected, and catches up first."""
    name, address = call.path["name"], _address(call.text("address"))
    if _NAME.fullmatch(name) is None:
        raise bad_request(
            f"'{name}' is not a valid broker name: expected 1 to 64 letters, digits or any of '._@-', beginning with a "
            "letter or digit"
        )
    voters = _voters(call)
    known = {member.name: member.address for member in voters}
    if known.get(NodeName(name)) == address:
        return created(new=False)
    others = [member for member in voters if member.name != name]
    for member in others:
        if member.address == address:
            raise bad_request(
                f"address {address} belongs to primary {member.name}: give the address on which other brokers connect "
                f"to {name}"
            )
    if name not in known:
        _check_newcomer(call, name)
    wanted = [*others, Member(NodeName(name), address)]
    await call.ask_cluster(lambda peers, on_ended: peers.change_members(wanted, on_ended))
    return created(new=name not in known)


def _check_newcomer(call: HttpCall, name: str) -> None:
    """Raises Refusal if it could not catch up, or would have a vote that it never casts."""
    if name not in call.node.peers.linked:
        raise bad_request(f"broker {name} is not connected: start it first, with the key of this cluster")
    if any(member.name == name and member.role == SECONDARY for member in call.views.cluster().members):
        raise bad_request(f"broker {name} runs as a secondary: add it to its cluster.primaries and restart it")


async def delete_member(call: HttpCall) -> Nothing:
    """A primary is no longer one; it need not be running."""
    name = call.path["name"]
    voters = _voters(call)
    left = [member for member in voters if member.name != name]
    if len(left) == len(voters):
        raise broker_not_found(name)
    await call.ask_cluster(lambda peers, on_ended: peers.change_members(left, on_ended))
    return deleted()


async def promote(call: HttpCall) -> Response:
    """`{name}`: the root hands over to this backup. `{name, force, dead}`: the named broker continues without the dead;
    this request goes to that broker itself, since there is no root."""
    name, dead = call.text("name"), call.value("dead", [])
    if not isinstance(dead, list) or not all(isinstance(one, str) for one in dead):
        raise bad_request("'dead' must be a list of broker names")
    if not call.boolean("force"):
        if dead:
            raise bad_request("'dead' is allowed only for a forced promotion: set 'force' to true, or leave it out")
        return await _hand_over(call, name)
    if name != call.services.settings.name:
        return await forward(call, name)
    epoch_id = str(uuid.uuid4())
    text = await call.ask_cluster(lambda peers, on_ended: peers.promote(dead, epoch_id, on_ended))
    return Json({"done": text})


async def _hand_over(call: HttpCall, name: str) -> Response:
    if not call.node.service_state.serves:
        return await _ask_root_to_hand_over(call, name)
    view = call.views.cluster()
    member = next((member for member in view.members if member.name == name), None)
    if member is None:
        raise broker_not_found(name)
    if name == view.root:
        return Json({"done": f"{name} is already the root"})
    if member.role != "backup" or not member.in_sync:
        state = f"a {member.role}" if member.role != "absent" else "absent"
        raise bad_request(
            f"{name} cannot become root: it is {state}{'' if member.in_sync else ' and not in sync'}; choose a backup "
            "that is in sync"
        )
    text = await call.ask_cluster(lambda peers, on_ended: peers.hand_over(name, on_ended))
    return Json({"done": text})


async def _ask_root_to_hand_over(call: HttpCall, name: str) -> Response:
    """The root restarts after the hand-over, which may interrupt its answer: then the new root shows the result."""
    try:
        return await forward_to_root(call)
    except AnswerLost as lost:
        deadline_s = time.monotonic() + limits.HAND_OVER_S_MAX
        while call.views.cluster().root != name:
            if time.monotonic() > deadline_s:
                raise lost from None
            await asyncio.sleep(0.05)
    return Json({"done": f"handed over to {name}"})


def _voters(call: HttpCall) -> list[Member]:
    """The current voters, each with an address: a broker that began alone has none configured."""
    cluster, own = call.services.settings.cluster, call.services.settings.name
    configured = {member.name: member.address for member in cluster.primaries}
    if not cluster.key:
        raise bad_request("this broker is not part of a cluster: set cluster.key_file, and start it again")
    own_address = configured.get(NodeName(own)) or cluster.advertise
    return [
        Member(member.name, own_address) if member.name == own and not member.address else member
        for member in call.node.peers.knowledge.membership.voters
    ]


def _address(text: str) -> str:
    try:
        address = ListenAddress.parse(text)
    except ValueError as error:
        raise bad_request(str(error)) from None
    if address.port == 0 or address.host in ("0.0.0.0", "::"):
        raise bad_request(
            f"'{text}' is not the address of a broker: expected a HOST that other machines can reach, and a PORT that "
            "is not 0"
        )
    return str(address)
