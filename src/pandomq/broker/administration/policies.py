"""The policies of a vhost: which one of them a queue or an exchange follows.

Of those whose pattern matches the name, only the one with the highest priority counts; of the operators' policies
likewise, and the two are merged. A queue or exchange holds the merged result, so nothing is matched while messages
pass.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq.broker.administration.patterns import compile_pattern
from pandomq.broker.administration.policy_definition import Definition, applicable, merge
from pandomq.broker.queues.queue_arguments import CLASSIC, QUORUM, STREAM
from pandomq.broker.queues.queue_settings import settings_of

if TYPE_CHECKING:
    from pandomq.broker.exchanges.exchange import Exchange
    from pandomq.broker.queues.queue import Queue

QUEUES: Final = "queues"
EXCHANGES: Final = "exchanges"
ALL: Final = "all"
_QUEUES_OF_TYPE: Final = {"classic_queues": CLASSIC, "quorum_queues": QUORUM, "streams": STREAM}
APPLY_TO: Final = (QUEUES, *_QUEUES_OF_TYPE, EXCHANGES, ALL)


class Policy:
    """Never changes: a new version replaces it."""

    __slots__ = ("_pattern", "apply_to", "definition", "name", "operator", "pattern", "priority", "rank")

    def __init__(
        self, name: str, pattern: str, apply_to: str, priority: int, definition: Definition, operator: bool
    ) -> None:
        self.name = name
        self.pattern = pattern
        self.apply_to = apply_to
        self.priority = priority
        self.definition = definition
        self.operator = operator
        self.rank = (-priority, name)
        """Of those that match, the one with the lowest counts: among equals the name decides, alike on all brokers."""
        self._pattern = compile_pattern(pattern)

    def matches_queue(self, queue: "Queue") -> bool:
        kind = queue.settings.type
        named = _QUEUES_OF_TYPE.get(self.apply_to) == kind
        return (
            (named or self.apply_to in (QUEUES, ALL))
            and self._pattern.matches(queue.name)
            and applicable(self.definition, kind, named=named)
        )

    def matches_exchange(self, exchange: "Exchange") -> bool:
        # Nothing about the default exchange can be changed.
        return self.apply_to in (EXCHANGES, ALL) and bool(exchange.name) and self._pattern.matches(exchange.name)


class Effect:
    """A policy and an operator's policy together; one of them may be missing."""

    __slots__ = ("definition", "operator", "plain_settings", "policy")

    def __init__(self, policy: Policy | None, operator: Policy | None) -> None:
        self.policy = policy
        self.operator = operator
        mine: Definition = {} if policy is None else policy.definition
        self.definition = mine if operator is None else merge(mine, operator.definition)
        self.plain_settings = settings_of({}, self.definition)
        """The settings of all queues without arguments that follow this effect; they share them."""

    @property
    def policy_name(self) -> str | None:
        return None if self.policy is None else self.policy.name

    @property
    def operator_name(self) -> str | None:
        return None if self.operator is None else self.operator.name


class PolicyChange(NamedTuple):
    """One policy replaced another; either may be missing."""

    old: Policy | None
    new: Policy | None
    operator: bool


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

    def put(self, policy: Policy) -> PolicyChange:
        return self._replace(policy.name, policy.operator, policy)

    def remove(self, name: str, operator: bool) -> PolicyChange:
        return self._replace(name, operator, None)

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

    def after(self, change: PolicyChange, before: Effect | None, matches: Callable[[Policy], bool]) -> Effect | None:
        """The result of `of_queue` or `of_exchange` now, for an object that followed this before the change.

        Most changes concern few of a vhost's queues: only those that followed the old policy try all patterns.
        """
        policy, operator = (None, None) if before is None else (before.policy, before.operator)
        if change.operator:
            operator = self._followed(change, operator, matches)
        else:
            policy = self._followed(change, policy, matches)
        return self._effect(policy, operator)

    def _followed(
        self, change: PolicyChange, before: Policy | None, matches: Callable[[Policy], bool]
    ) -> Policy | None:
        if before is not None and before is change.old:
            return next(filter(matches, self._kind(change.operator)), None)
        new = change.new
        if new is not None and (before is None or new.rank < before.rank) and matches(new):
            return new
        return before

    def _effect(self, policy: Policy | None, operator: Policy | None) -> Effect | None:
        if policy is None and operator is None:
            return None
        effect = self._effects.get((policy, operator))
        if effect is None:
            effect = self._effects[policy, operator] = Effect(policy, operator)
        return effect

    def _kind(self, operator: bool) -> Iterable[Policy]:
        return (self._operators if operator else self._policies).values()

    def _replace(self, name: str, operator: bool, new: Policy | None) -> PolicyChange:
        old = self.find(name, operator)
        policies = [policy for policy in self._kind(operator) if policy is not old]
        if new is not None:
            policies.append(new)
        by_name = {policy.name: policy for policy in sorted(policies, key=lambda policy: policy.rank)}
        if operator:
            self._operators = by_name
        else:
            self._policies = by_name
        self._effects = {
            pair: effect
            for pair, effect in self._effects.items()
            if all(policy is None or self.find(policy.name, policy.operator) is policy for policy in pair)
        }
        return PolicyChange(old, new, operator)
