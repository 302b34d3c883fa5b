"""Checks rights on the data port, with the refusal texts of AMQP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq import data_form
from pandomq.broker.administration.rights import DATA
from pandomq.node.data.refusals import RequestRefused

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.node.data.session import DataSession


def allows(client: DataSession, fields: Fields, what: str, name: str) -> bool:
    """Whether the user has the right that this request needs on an object of this name."""
    access = client.access
    return any(access.allows(right, name) for right in DATA[fields["ask"]].needs[what])


def demand(client: DataSession, fields: Fields, what: str, name: str) -> None:
    """Raises Refused (403) unless it has."""
    if not allows(client, fields, what, name):
        right = DATA[fields["ask"]].needs[what][0]
        raise RequestRefused(
            data_form.ACCESS_REFUSED,
            f"{right.name.lower()} access to {what} '{name}' in vhost '{client.vhost_name}' refused for user "
            f"'{client.user}'",
        )
