"""Who comes in at the data port: the same users, passwords, certificates, rights and waits as over AMQP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq import data_form
from pandomq.ids import UserName
from pandomq.limits import PASSWORD_BYTES_MAX, USER_NAME_BYTES_MAX, VHOST_NAME_BYTES_MAX
from pandomq.node.attempts import Caller
from pandomq.node.data import fields as read
from pandomq.node.data.client import Answer, DataClient, State
from pandomq.node.data.refusals import Refused, bad_request, not_now
from pandomq.wire.inputs import Login
from pandomq.wire.sasl import EXTERNAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from pandomq.data_form import Fields
    from pandomq.node.logins import Welcome

HELLO: Final = "hello"
_PLAIN: Final = "PLAIN"
_ALLOWED_AS: Final = {_PLAIN: {"PLAIN", "AMQPLAIN"}, EXTERNAL: {EXTERNAL}}
"""By which of AMQP's mechanisms a broker allows it: the first two are ways to say a password."""
_WHY_NOT: Final = {_PLAIN: "unknown user or wrong password", EXTERNAL: "no certificate of a user was shown"}


def say_hello(client: DataClient, fields: Fields, answer: Answer, on_known: Callable[[DataClient], None]) -> None:
    """Raises Refused. `on_known` is called once the client may ask for more."""
    if fields.get("ask") != HELLO:
        raise Refused(data_form.ACCESS_REFUSED, "the first thing to say is hello")
    if fields.get("version") != data_form.VERSION:
        raise bad_request(f"this broker speaks version {data_form.VERSION} of the data port's protocol")
    services = client.services
    if not services.ready:
        raise not_now(f"this broker is a {services.role} and has no data to serve")
    login = _login(fields, services.mechanisms())
    client.vhost_name = read.text(fields, "vhost", VHOST_NAME_BYTES_MAX)
    client.state = State.LOGGING_IN

    def on_answer(welcome: Welcome | None) -> None:
        if client.state is not State.LOGGING_IN:
            return
        if welcome is None:
            why_not = _WHY_NOT[login.mechanism]
            answer.refuse(Refused(data_form.ACCESS_REFUSED, f"login refused: {why_not}"), ends=True)
            return
        client.user = welcome.user
        try:
            _ = client.access
        except Refused as refused:
            answer.refuse(refused, ends=True)
            return
        on_known(client)
        answer.ok(
            {
                "node": services.broker.node_name,
                "role": services.spoken_role,
                "root": services.root(tls=client.tls),
                "brokers": services.brokers(tls=client.tls),
            }
        )

    caller = Caller(on_answer, lambda: client.gone, client.certificate_name)
    services.log_in(caller, login, client.peer, services.now_ms)


def _login(fields: Fields, mechanisms: tuple[str, ...]) -> Login:
    """Raises Refused."""
    mechanism = fields.get("mechanism", _PLAIN)
    if mechanism not in (_PLAIN, EXTERNAL):
        raise bad_request(f"mechanism is {_PLAIN} or {EXTERNAL}")
    if _ALLOWED_AS[mechanism].isdisjoint(mechanisms):
        raise Refused(data_form.ACCESS_REFUSED, f"login refused: this broker does not allow {mechanism}")
    if mechanism == EXTERNAL:
        return Login(mechanism, UserName(""), b"", {})
    user = read.text(fields, "user", USER_NAME_BYTES_MAX)
    password = read.text(fields, "password", PASSWORD_BYTES_MAX)
    return Login(mechanism, UserName(user), password.encode("utf-8", "surrogatepass"), {})
