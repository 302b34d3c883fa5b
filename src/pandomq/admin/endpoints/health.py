"""Health: for load balancers and orchestrators, and RabbitMQ's health checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import PlainTextResponse

from pandomq.admin.refusals import bad_request, not_authorised
from pandomq.admin.responses import Json
from pandomq.errors import Fault
from pandomq.methods import BasicPublish, QueueDeclare
from pandomq.node.views.cluster_view import ABSENT, BACKUP, ROOT
from pandomq.properties import Properties, encode_header
from pandomq.replica.members.quorum import elect_need

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall

OK: Final = {"status": "ok"}
ALIVENESS_QUEUE: Final = "aliveness-test"
_FAILED: Final = 503
_PORT_DIGITS_MAX: Final = 5
_PROTOCOLS: Final = {
    "amqp091": "amqp",
    "amqp0.9.1": "amqp",
    "amqp0-9-1": "amqp",
    "amqps": "amqp/ssl",
    "amqp+ssl": "amqp/ssl",
    "amqp/tls": "amqp/ssl",
    "https": "https",
}


async def alive(_call: HttpCall) -> PlainTextResponse:
    """The loop runs, otherwise there would be no answer."""
    return PlainTextResponse("ok\n")


async def ready(call: HttpCall) -> PlainTextResponse:
    """The broker works: it serves clients, or follows a root that does."""
    if _takes_clients(call):
        refusal = call.node.service_state.refusal()
        if refusal is None:
            return PlainTextResponse("ready\n")
        if call.node.service_state.in_step:
            return PlainTextResponse(f"ready: {_text(refusal)}\n")
        return PlainTextResponse(f"not ready: {_text(refusal)}\n", _FAILED)
    return PlainTextResponse("not ready\n", _FAILED)


async def root(call: HttpCall) -> PlainTextResponse:
    """Whether this broker serves clients as root: for load balancers."""
    refusal = call.node.service_state.refusal()
    if refusal is None and _takes_clients(call):
        return PlainTextResponse("root\n")
    return PlainTextResponse("not ready\n" if refusal is None else f"{_text(refusal)}\n", _FAILED)


async def clients(call: HttpCall) -> PlainTextResponse:
    """Whether this broker serves clients, as the root or on its behalf: for load balancers."""
    if call.node.service_state.takes_clients and _takes_clients(call):
        return PlainTextResponse("serving\n")
    refusal = call.node.service_state.refusal()
    return PlainTextResponse("not ready\n" if refusal is None else f"{_text(refusal)}\n", _FAILED)


def _takes_clients(call: HttpCall) -> bool:
    return any(listener.protocol.startswith("amqp") for listener in call.views.listeners)


def _text(refusal: Fault) -> str:
    return refusal.reply_text.partition(" - ")[2]


async def alarms(call: HttpCall) -> Json:
    raised = call.views.alarms()
    if not raised:
        return Json(OK)
    node = call.services.settings.name
    return Json(
        {
            "status": "failed",
            "reason": "There are alarms in effect in the cluster",
            "alarms": [{"node": node, "resource": alarm} for alarm in raised],
        },
        _FAILED,
    )


async def fine(_call: HttpCall) -> Json:
    """Checks that could only fail if there were no answer."""
    return Json(OK)


async def not_critical(_call: HttpCall) -> Json:
    return Json({**OK, "reason": "single node cluster"})


async def quorum_critical(call: HttpCall) -> Json:
    """Whether the other brokers could not elect a root without this one."""
    view = call.views.cluster()
    voters = [member for member in view.members if member.role in (ROOT, BACKUP, ABSENT)]
    if len(voters) < 2:
        return await not_critical(call)
    others = [member.name for member in voters if member.name != view.name and member.role != ABSENT]
    if len(others) >= elect_need(len(voters)):
        return Json(OK)
    reason = f"without this broker only {len(others)} of {len(voters)} primaries would be left, too few to elect a root"
    return Json({"status": "failed", "reason": reason, "queues": []}, _FAILED)


async def port_listener(call: HttpCall) -> Json:
    text = call.path["port"]
    if not (text.isascii() and text.isdigit() and len(text) <= _PORT_DIGITS_MAX) or int(text) > 65535:
        raise bad_request("Invalid port")
    ports = sorted({listener.port for listener in call.views.listeners})
    if int(text) in ports:
        return Json({**OK, "port": int(text)})
    return _no_listener({"missing": int(text), "ports": ports})


async def protocol_listener(call: HttpCall) -> Json:
    wanted = call.path["protocol"].lower()
    wanted = _PROTOCOLS.get(wanted, wanted)
    protocols = sorted({listener.protocol for listener in call.views.listeners})
    if wanted in protocols:
        return Json({**OK, "protocol": wanted})
    return _no_listener({"missing": call.path["protocol"], "protocols": protocols})


async def aliveness(call: HttpCall) -> Json:
    """Declares a queue, sends a message through it, and returns ok."""
    body = b"test_message"
    try:
        async with call.client(call.path["vhost"]) as client:
            await client.ask(QueueDeclare(ALIVENESS_QUEUE))
            await client.publish(BasicPublish("", ALIVENESS_QUEUE), encode_header(len(body), Properties()), body)
            message = await client.get(ALIVENESS_QUEUE, no_ack=True)
    except Fault as fault:
        raise not_authorised(fault.reply_text) from None
    return (
        Json(OK)
        if message is not None
        else Json({"status": "failed", "reason": "the message was not returned by the queue"}, _FAILED)
    )


def _no_listener(facts: dict[str, Any]) -> Json:
    return Json({"status": "failed", "reason": "No active listener", **facts}, _FAILED)
