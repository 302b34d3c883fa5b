"""The policies of a vhost: which one of them a queue or an exchange follows.

Of those whose pattern matches the name, the one with the highest priority counts, alone; of the operators' policies
likewise, and the two are merged. What follows a policy holds the merged result, so nothing is matched while messages
pass.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from pandomq.broker.patterns import compile_pattern
from pandomq.broker.policy_definition import Definition, applicable, merge
from pandomq.broker.queue_arguments import CLASSIC, QUORUM

if TYPE_CHECKING:
    from pandomq.broker.exchanges.exchange import Exchange
    from pandomq.broker.queue import Queue

QUEUES: Final = "queues"
EXCHANGES: Final = "exchanges"
ALL: Final = "all"
_QUEUES_OF_TYPE: Final = {"classic_queues": CLASSIC, "quorum_queues": QUORUM}
APPLY_TO: Final = (QUEUES, *_QUEUES_OF_TYPE, "streams", EXCHANGES, ALL)


class Policy:
    """Never changes: a new version takes its place."""

    __slots__ = ("_pattern", "apply_to", "definition", "name", "operator", "pattern", "priority")

    def __init__(
        self, name: str, pattern: str, apply_to: str, priority: int, definition: Definition, operator: bool
    ) -> None:
        self.name = name
        self.pattern = pattern
        self.apply_to = apply_to
        self.priority = priority
        self.definition = definition
        self.operator = operator
        self._pattern = compile_pattern(pattern)

    def matches_queue(self, queue: "Queue") -> bool:
        kind = queue.settings.type
        return (
            (self.apply_to in (QUEUES, ALL) or _QUEUES_OF_TYPE.get(self.apply_to) == kind)
            and applicable(self.definition, kind)
            and self._pattern.matches(queue.name)
        )

    def matches_exchange(self, exchange: "Exchange") -> bool:
        return self.apply_to in (EXCHANGES, ALL) and self._pattern.matches(exchange.name)


class Effect:
    """A policy and an operator's policy together; one of them may be missing."""

    __slots__ = ("definition", "operator", "policy")

    def __init__(self, policy: Policy | None, operator: Policy | None) -> None:
        self.policy = policy
        self.operator = operator
        mine: Definition = {} if policy is None else policy.definition
        self.definition = mine if operator is None else merge(mine, operator.definition)

    @property
    def policy_name(self) -> str | None:
        return None if self.policy is None else self.policy.name

    @property
    def operator_name(self) -> str | None:
        return None if self.operator is None else self.operator.name


class Policies:
    __slots__ = ("_effects", "_operators", "_policies")

    def __init__(self) -> None:
        # By name, in the order in which they are tried.
        self._policies: dict[str, Policy] = {}
        self._operators: dict[str, Policy] = {}
        self._effects: dict[tuple[Policy | None, Policy | None], Effect] = {}

    def __len__(self) -> int:
        return len(self._policies) + len(self._operators)

    def __iter__(self) -> Iterator[Policy]:
        yield from self._policies.values()
        yield from self._operators.values()

    def find(self, name: str, operator: bool) -> Policy | None:
        return (self._operators if operator else self._policies).get(name)

    def put(self, policy: Policy) -> None:
        kept = [other for other in self._kind(policy.operator) if other.name != policy.name]
        self._replace([*kept, policy], policy.operator)

    def remove(self, name: str, operator: bool) -> None:
        self._replace([other for other in self._kind(operator) if other.name != name], operator)

    def of_queue(self, queue: "Queue") -> Effect | None:
        return self._effect(
            next((policy for policy in self._policies.values() if policy.matches_queue(queue)), None),
            next((policy for policy in self._operators.values() if policy.matches_queue(queue)), None),
        )

    def of_exchange(self, exchange: "Exchange") -> Effect | None:
        return self._effect(
            next((policy for policy in self._policies.values() if policy.matches_exchange(exchange)), None),
            next((policy for policy in self._operators.values() if policy.matches_exchange(exchange)), None),
        )

    def _effect(self, policy: Policy | None, operator: Policy | None) -> Effect | None:
        if policy is None and operator is None:
            return None
        effect = self._effects.get((policy, operator))
        if effect is None:
            effect = self._effects[policy, operator] = Effect(policy, operator)
        return effect

    def _kind(self, operator: bool) -> Iterable[Policy]:
        return (self._operators if operator else self._policies).values()

    def _replace(self, policies: list[Policy], operator: bool) -> None:
        # Among equals the name decides, so that all brokers decide alike.
        policies.sort(key=lambda policy: (-policy.priority, policy.name))
        by_name = {policy.name: policy for policy in policies}
        if operator:
            self._operators = by_name
        else:
            self._policies = by_name
        self._effects = {
            pair: effect
            for pair, effect in self._effects.items()
            if all(policy is None or self.find(policy.name, policy.operator) is policy for policy in pair)
        }
