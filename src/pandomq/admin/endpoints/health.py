"""Health: for load balancers and orchestrators, and RabbitMQ's health checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import PlainTextResponse

from pandomq.admin.refusals import bad_request, not_authorised
from pandomq.admin.responses import Json
from pandomq.errors import Fault
from pandomq.methods import BasicPublish, QueueDeclare
from pandomq.properties import Properties, encode_header

if TYPE_CHECKING:
    from pandomq.admin.call import Call

OK: Final = {"status": "ok"}
ALIVENESS_QUEUE: Final = "aliveness-test"
_FAILED: Final = 503
_PROTOCOLS: Final = {
    "amqp091": "amqp",
    "amqp0.9.1": "amqp",
    "amqp0-9-1": "amqp",
    "amqps": "amqp/ssl",
    "amqp+ssl": "amqp/ssl",
    "amqp/tls": "amqp/ssl",
    "https": "https",
}


async def alive(_call: Call) -> PlainTextResponse:
    """The loop turns, or nobody would answer."""
    return PlainTextResponse("ok\n")


async def ready(call: Call) -> PlainTextResponse:
    """It accepts clients and serves them: it is the root."""
    takes_clients = any(listener.protocol.startswith("amqp") for listener in call.views.listeners)
    if takes_clients and call.node.office.refusal() is None:
        return PlainTextResponse("ready\n")
    return PlainTextResponse("not ready\n", _FAILED)


async def alarms(call: Call) -> Json:
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


async def fine(_call: Call) -> Json:
    """What could only fail if nobody answered."""
    return Json(OK)


async def not_critical(_call: Call) -> Json:
    return Json({**OK, "reason": "single node cluster"})


async def port_listener(call: Call) -> Json:
    text = call.path["port"]
    if not (text.isascii() and text.isdigit()) or int(text) > 65535:
        raise bad_request("Invalid port")
    ports = sorted({listener.port for listener in call.views.listeners})
    if int(text) in ports:
        return Json({**OK, "port": int(text)})
    return _no_listener({"missing": int(text), "ports": ports})


async def protocol_listener(call: Call) -> Json:
    wanted = call.path["protocol"].lower()
    wanted = _PROTOCOLS.get(wanted, wanted)
    protocols = sorted({listener.protocol for listener in call.views.listeners})
    if wanted in protocols:
        return Json({**OK, "protocol": wanted})
    return _no_listener({"missing": call.path["protocol"], "protocols": protocols})


async def aliveness(call: Call) -> Json:
    """Declares a queue, puts a message through it, and says ok."""
    body = b"test_message"
    try:
        async with call.client(call.path["vhost"]) as client:
            await client.ask(QueueDeclare(ALIVENESS_QUEUE))
            await client.publish(BasicPublish("", ALIVENESS_QUEUE), encode_header(len(body), Properties()), body)
            messages = await client.get(ALIVENESS_QUEUE, 1, no_ack=True)
    except Fault as fault:
        raise not_authorised(fault.reply_text) from None
    return Json(OK) if messages else Json({"status": "failed", "reason": "the message did not come back"}, _FAILED)


def _no_listener(facts: dict[str, Any]) -> Json:
    return Json({"status": "failed", "reason": "No active listener", **facts}, _FAILED)
