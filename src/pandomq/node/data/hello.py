"""Logins at the data port: the same users, passwords, certificates, rights and waits as over AMQP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq import data_form
from pandomq.ids import UserName
from pandomq.limits import PASSWORD_BYTES_MAX, USER_NAME_BYTES_MAX, VHOST_NAME_BYTES_MAX
from pandomq.node.clients.attempts import LoginRequester
from pandomq.node.data import fields as read
from pandomq.node.data.refusals import RequestRefused, bad_request, not_now
from pandomq.node.data.session import DataSession, DataSessionState, Responder
from pandomq.wire.inputs import Login
from pandomq.wire.sasl import EXTERNAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from pandomq.data_form import Fields
    from pandomq.node.clients.logins import LoginAccepted

HELLO: Final = "hello"
_PLAIN: Final = "PLAIN"
_ALLOWED_AS: Final = {_PLAIN: {"PLAIN", "AMQPLAIN"}, EXTERNAL: {EXTERNAL}}
"""The mechanisms of AMQP by which a broker allows each: the first two are ways to send a password."""
_WHY_NOT: Final = {_PLAIN: "unknown user or wrong password", EXTERNAL: "the client presented no certificate of a user"}


def say_hello(client: DataSession, fields: Fields, answer: Responder, on_known: Callable[[DataSession], None]) -> None:
    """Raises Refused. `on_known` is called once the client may send further requests; it may raise Refused, too."""
    if fields.get("ask") != HELLO:
        raise RequestRefused(data_form.ACCESS_REFUSED, "the first request must be hello")
    if fields.get("version") != data_form.VERSION:
        raise bad_request(f"this broker supports version {data_form.VERSION} of the data port's protocol")
    services = client.services
    if not services.ready:
        raise not_now(f"this broker is a {services.role} and has no data port: connect to a primary")
    login = _login(fields, services.mechanisms())
    client.vhost_name = read.text(fields, "vhost", VHOST_NAME_BYTES_MAX)
    client.state = DataSessionState.LOGGING_IN

    def on_answer(welcome: LoginAccepted | None) -> None:
        if client.state is not DataSessionState.LOGGING_IN:
            return
        if welcome is None:
            why_not = _WHY_NOT[login.mechanism]
            answer.refuse(RequestRefused(data_form.ACCESS_REFUSED, f"login refused: {why_not}"), ends=True)
            return
        client.user = welcome.user
        try:
            _ = client.access
            on_known(client)
        except RequestRefused as refused:
            answer.refuse(refused, ends=True)
            return
        answer.ok(
            {
                "node": services.broker.node_name,
                "role": services.spoken_role,
                "root": services.root(tls=client.tls),
                "brokers": services.brokers(tls=client.tls),
            }
        )

    caller = LoginRequester(on_answer, lambda: client.gone, client.certificate_name, relayed=not client.from_loopback)
    services.log_in(caller, login, client.peer, services.now_ms)


def _login(fields: Fields, mechanisms: tuple[str, ...]) -> Login:
    """Raises Refused."""
    mechanism = fields.get("mechanism", _PLAIN)
    if mechanism not in (_PLAIN, EXTERNAL):
        raise bad_request(f"mechanism must be {_PLAIN} or {EXTERNAL}")
    if _ALLOWED_AS[mechanism].isdisjoint(mechanisms):
        raise RequestRefused(data_form.ACCESS_REFUSED, f"login refused: this broker does not allow {mechanism}")
    if mechanism == EXTERNAL:
        return Login(mechanism, UserName(""), b"", {})
    user = read.text(fields, "user", USER_NAME_BYTES_MAX)
    password = read.text(fields, "password", PASSWORD_BYTES_MAX)
    return Login(mechanism, UserName(user), password.encode(), {})
