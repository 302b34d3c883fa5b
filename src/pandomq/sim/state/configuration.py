"""A second definition of a broker's configuration: what a few names should mean after each change.

Changes are small and idempotent. A restart, which removes what is not durable, is one of the changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.broker.log.commands import (
    AdministrativeCommand,
    DeletePolicy,
    DeleteUser,
    DeleteVhost,
    PutPolicy,
    PutUser,
    PutVhost,
)
from pandomq.methods import (
    ExchangeBind,
    ExchangeDeclare,
    ExchangeDelete,
    ExchangeUnbind,
    Method,
    QueueBind,
    QueueDeclare,
    QueueDelete,
    QueueUnbind,
)

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker

PREFIX: Final = "c-"
"""The beginning of all names that the model covers."""

Binding = tuple[str, str, str, str]
"""Source, kind of the destination, destination, key."""
Change = Method | AdministrativeCommand


class DefinitionsModel(msgspec.Struct, frozen=True):
    exchanges: dict[str, tuple[str, bool]] = {}
    """Type and whether it is durable."""
    queues: dict[str, bool] = {}
    bindings: frozenset[Binding] = frozenset()
    policies: dict[str, tuple[str, int]] = {}
    """Pattern and priority."""
    users: frozenset[str] = frozenset()
    vhosts: frozenset[str] = frozenset()

    def after(self, change: Change) -> DefinitionsModel:
        replace = msgspec.structs.replace
        match change:
            case ExchangeDeclare(name, kind, _, durable):
                return replace(self, exchanges={**self.exchanges, name: (kind, durable)})
            case ExchangeDelete(name):
                return self._without(exchanges={name}, queues=set())
            case QueueDeclare(name, _, durable):
                return replace(self, queues={**self.queues, name: durable})
            case QueueDelete(name):
                return self._without(exchanges=set(), queues={name})
            case QueueBind(queue, source, key):
                return replace(self, bindings=self.bindings | {(source, "queue", queue, key)})
            case QueueUnbind(queue, source, key):
                return replace(self, bindings=self.bindings - {(source, "queue", queue, key)})
            case ExchangeBind(destination, source, key):
                return replace(self, bindings=self.bindings | {(source, "exchange", destination, key)})
            case ExchangeUnbind(destination, source, key):
                return replace(self, bindings=self.bindings - {(source, "exchange", destination, key)})
            case PutPolicy(_, name, pattern, _, priority):
                return replace(self, policies={**self.policies, name: (pattern, priority)})
            case DeletePolicy(_, name):
                return replace(self, policies={key: value for key, value in self.policies.items() if key != name})
            case PutUser(name):
                return replace(self, users=self.users | {name})
            case DeleteUser(name):
                return replace(self, users=self.users - {name})
            case PutVhost(name):
                return replace(self, vhosts=self.vhosts | {name})
            case DeleteVhost(name):
                return replace(self, vhosts=self.vhosts - {name})
            case _:
                raise AssertionError(f"the model does not know {change}")

    def restarted(self) -> DefinitionsModel:
        return self._without(
            exchanges={name for name, (_, durable) in self.exchanges.items() if not durable},
            queues={name for name, durable in self.queues.items() if not durable},
        )

    def _without(self, exchanges: set[str], queues: set[str]) -> DefinitionsModel:
        return msgspec.structs.replace(
            self,
            exchanges={name: value for name, value in self.exchanges.items() if name not in exchanges},
            queues={name: value for name, value in self.queues.items() if name not in queues},
            bindings=frozenset(
                (source, kind, destination, key)
                for source, kind, destination, key in self.bindings
                if source not in exchanges and destination not in (queues if kind == "queue" else exchanges)
            ),
        )

    def difference(self, other: DefinitionsModel) -> str:
        """Describes the difference for a reader; empty if there is none."""
        found = []
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                found.append(f"{name} should be {_sorted(mine)}, are {_sorted(theirs)}")
        return "; ".join(found)


def _sorted(value: dict[str, object] | frozenset[object]) -> str:
    return str(sorted(value.items()) if isinstance(value, dict) else sorted(value, key=str))


def configuration_of(broker: Broker) -> DefinitionsModel:
    """Returns the broker's configuration, as far as the model covers it."""
    vhost = broker.state.vhosts["/"]
    exchanges = [exchange for exchange in vhost.router.exchanges.values() if exchange.name.startswith(PREFIX)]
    return DefinitionsModel(
        exchanges={exchange.name: (exchange.type_name, exchange.durable) for exchange in exchanges},
        queues={queue.name: queue.durable for queue in vhost.queues.values() if queue.name.startswith(PREFIX)},
        bindings=frozenset(
            (binding.source, binding.kind.value, binding.destination.name, binding.routing_key)
            for exchange in exchanges
            for binding in exchange.bindings()
        ),
        policies={
            policy.name: (policy.pattern, policy.priority)
            for policy in vhost.policies
            if policy.name.startswith(PREFIX)
        },
        users=frozenset(name for name in broker.state.users if name.startswith(PREFIX)),
        vhosts=frozenset(name for name in broker.state.vhosts if name.startswith(PREFIX)),
    )
