"""Whether a user may enter a vhost, and with which rights."""

from typing import TYPE_CHECKING

from pandomq.broker.administration.quotas import Tally, check_connection
from pandomq.errors import not_allowed

if TYPE_CHECKING:
    from pandomq.broker.administration.permissions import VhostAccess
    from pandomq.broker.broker import Broker
    from pandomq.broker.vhost import Vhost


def enter(broker: "Broker", user: str, vhost: str, *, counted: bool, trunk: bool) -> "tuple[Vhost, VhostAccess, Tally]":
    """The client's vhost, its rights there, and its tally. Raises ConnectionFault (530)."""
    home = broker.state.vhosts.get(vhost)
    if home is None:
        raise not_allowed(f"vhost {vhost} not found")
    if counted:
        check_connection(broker, user, home)
    if trunk:
        return home, home.access_of_brokers(), Tally()
    access = home.access.get(user)
    if access is None or access.permissions is None:
        raise not_allowed(f"access to vhost '{vhost}' refused for user '{user}'")
    tally = broker.tallies.get(user)
    if tally is None:
        tally = broker.tallies[user] = Tally()
    if counted:
        tally.connection_count += 1
        home.connection_count += 1
    return home, access, tally
