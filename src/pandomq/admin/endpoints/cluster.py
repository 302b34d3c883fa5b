"""The cluster: who is in it, who is root, and what a person may change about that."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Final

from pandomq.admin.forwarding import forward, forward_to_root
from pandomq.admin.refusals import bad_request, not_found
from pandomq.admin.responses import Json, Nothing, created, deleted
from pandomq.ids import NodeName
from pandomq.node.cluster_view import SECONDARY
from pandomq.replica.membership import Member
from pandomq.runtime.listen import Address

if TYPE_CHECKING:
    from starlette.responses import Response

    from pandomq.admin.call import Call

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)


async def show(call: Call) -> Json:
    """What `pandomq status --json` prints."""
    return Json(call.views.cluster())


async def list_members(call: Call) -> Json:
    return Json(call.views.cluster().members)


async def put_member(call: Call) -> Nothing:
    """A broker becomes a primary: it must be there, and catches up first."""
    name, address = call.path["name"], _address(call.text("address"))
    if _NAME.fullmatch(name) is None:
        raise bad_request(f"'{name}' cannot name a broker")
    voters = _voters(call)
    known = {member.name: member.address for member in voters}
    if known.get(NodeName(name)) == address:
        return created(new=False)
    others = [member for member in voters if member.name != name]
    if any(member.address == address for member in others):
        raise bad_request(f"{address} is another primary's address")
    if name not in known:
        _check_newcomer(call, name)
    wanted = [*others, Member(NodeName(name), address)]
    await call.ask_cluster(lambda peers, on_ended: peers.change_members(wanted, on_ended))
    return created(new=name not in known)


def _check_newcomer(call: Call, name: str) -> None:
    """Raises Refusal: it could not catch up, or would have a vote and never give it."""
    if name not in call.node.peers.linked:
        raise bad_request(f"{name} is not linked: start it first, with the key of this cluster")
    if any(member.name == name and member.role == SECONDARY for member in call.views.cluster().members):
        raise bad_request(f"{name} runs as a secondary: start it again with itself among cluster.primaries")


async def delete_member(call: Call) -> Nothing:
    """A primary is one no longer: it may have gone long ago."""
    name = call.path["name"]
    voters = _voters(call)
    left = [member for member in voters if member.name != name]
    if len(left) == len(voters):
        raise not_found()
    await call.ask_cluster(lambda peers, on_ended: peers.change_members(left, on_ended))
    return deleted()


async def promote(call: Call) -> Response:
    """`{name}`: the root hands over to this backup. `{name, force, dead}`: it goes on without the dead; then it is
    asked of that broker itself, since there is no root."""
    name, dead = call.text("name"), call.value("dead", [])
    if not isinstance(dead, list) or not all(isinstance(one, str) for one in dead):
        raise bad_request("dead is not a list of names")
    if not call.boolean("force"):
        if dead:
            raise bad_request("nobody is dead unless a promotion is forced")
        return await _hand_over(call, name)
    if name != call.services.settings.name:
        return await forward(call, name)
    epoch_id = str(uuid.uuid4())
    text = await call.ask_cluster(lambda peers, on_ended: peers.promote(dead, epoch_id, on_ended))
    return Json({"done": text})


async def _hand_over(call: Call, name: str) -> Response:
    if call.node.office.refusal() is not None:
        return await forward_to_root(call)
    view = call.views.cluster()
    member = next((member for member in view.members if member.name == name), None)
    if member is None:
        raise not_found()
    if name == view.root:
        return Json({"done": f"{name} is the root already"})
    if member.role != "backup" or not member.in_sync:
        raise bad_request(f"{name} is {member.role}{'' if member.in_sync else ' and not in sync'}: it cannot take over")
    text = await call.ask_cluster(lambda peers, on_ended: peers.hand_over(name, on_ended))
    return Json({"done": text})


def _voters(call: Call) -> list[Member]:
    """As they are now, each with an address: who began alone was not asked for one."""
    cluster, own = call.services.settings.cluster, call.services.settings.name
    configured = {member.name: member.address for member in cluster.primaries}
    if not cluster.key:
        raise bad_request("this broker is alone: it has no cluster key")
    own_address = configured.get(NodeName(own)) or cluster.advertise
    return [
        Member(member.name, own_address) if member.name == own and not member.address else member
        for member in call.node.peers.notices.membership.voters
    ]


def _address(text: str) -> str:
    try:
        address = Address.parse(text)
    except ValueError as error:
        raise bad_request(str(error)) from None
    if address.port == 0 or address.host in ("0.0.0.0", "::"):
        raise bad_request(f"'{text}' is no place where a broker could be found")
    return str(address)
