"""Forwards requests to another broker: changes go to the root.

They are sent on the link between the two brokers, which have both proven to have the cluster's key. The receiving
broker has checked the login and passes only the user's name: it forwards neither a password nor a proof of a key. The
answer is returned unchanged. A request is forwarded once: a broker that gets a forwarded request that is not for it
rejects it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from pandomq.admin import limits
from pandomq.admin.access.identity import BY_KEY
from pandomq.admin.refusals import Refusal, unavailable
from pandomq.cluster.passed_requests import PassedAnswer, PassedRequest

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall

_PASSED_ON: Final = ("content-type", "x-reason", "accept")
_PASSED_BACK: Final = ("content-type", "allow", "location", "cache-control", "www-authenticate")


class AnswerLost(Refusal):
    """The request was forwarded, and the link broke before its answer: it may have taken effect."""

    def __init__(self, reason: str) -> None:
        lost = unavailable(reason)
        super().__init__(lost.status, lost.error, lost.reason)


async def forward_to_root(call: HttpCall) -> Response:
    """Raises Refusal (503) if no root is known, or it is unreachable."""
    node = call.node
    root = call.views.cluster().root
    if root is None or root == call.services.settings.name:
        refusal = node.service_state.refusal()
        raise unavailable(
            "no root is known at present: try again in a moment"
            if refusal is None
            else refusal.reply_text.partition(" - ")[2]
        )
    return await forward(call, root)


async def forward(call: HttpCall, name: str) -> Response:
    """To the broker of that name. Raises Refusal (503)."""
    if call.passed_on_by is not None:
        raise unavailable(
            f"{call.passed_on_by} passed this on to {call.services.settings.name}, but it is a request for {name}"
        )
    requests = call.node.peer_requests
    reason = "this broker has no links to other brokers" if requests is None else requests.objection(name)
    if requests is None or reason is not None:
        raise unavailable(f"this request is for {name}, and cannot be passed on: {reason}")
    answered: asyncio.Future[PassedAnswer | str] = asyncio.get_running_loop().create_future()

    def on_answer(answer: PassedAnswer | str) -> None:
        if not answered.done():
            answered.set_result(answer)

    number = requests.ask(name, _request(call), on_answer)
    call.services.wake()
    try:
        async with asyncio.timeout(limits.FORWARD_S_MAX):
            answer = await answered
    except TimeoutError:
        raise unavailable(f"{name} does not respond; it is not known whether the request was carried out") from None
    finally:
        requests.give_up(number)
        call.services.wake()
    if isinstance(answer, str):
        raise AnswerLost(f"this request is for {name}: {answer}")
    return Response(answer.body, answer.status, dict(answer.headers))


def _request(call: HttpCall) -> PassedRequest:
    request, identity = call.request, call.identity
    headers = tuple((name, request.headers[name]) for name in _PASSED_ON if name in request.headers)
    by_key = identity is BY_KEY
    return PassedRequest(request.method, call.target, identity.name, by_key, headers, call.octets)


def passed_back(response: Response) -> PassedAnswer:
    """The answer for the broker that forwarded the request."""
    headers = tuple((name, value) for name, value in response.headers.items() if name in _PASSED_BACK)
    return PassedAnswer(response.status_code, headers, bytes(response.body))
