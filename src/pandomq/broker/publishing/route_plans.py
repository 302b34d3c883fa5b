"""Caches the results of static routes, and the exchanges that each of them passed: a change withdraws the affected
ones.

A plan is stored under the exchange and key it starts from. It keeps one key on its whole route, so code that changes
how an exchange handles a key finds the plans that passed it with that key, and pays for no others.
"""

from collections.abc import Iterable

from pandomq.kernel import Plan, Queue


class _Remembered:
    __slots__ = ("_others", "key", "plan", "source", "via")

    def __init__(self, plan: Plan, source: str, key: str, via: tuple[str, ...]) -> None:
        self.plan = plan
        self._others: dict[Queue, Plan] = {}
        """By queue: the plan without this queue. Such queues are other brokers' outlets, so they are few."""
        self.source = source
        self.key = key
        self.via = via

    def without(self, queue: Queue) -> Plan:
        other = self._others.get(queue)
        if other is None:
            queues = self.plan.queues
            left = [one for one in queues if one is not queue]
            other = self._others[queue] = self.plan if len(left) == len(queues) else Plan(left)
        return other

    def withdraw(self) -> None:
        self.plan.withdraw()
        for other in self._others.values():
            other.withdraw()


class RoutePlans:
    """Exchanges are known by name here, since a plan may also depend on one that does not exist (an alternate)."""

    def __init__(self, plans_max: int) -> None:
        self._plans_max = plans_max
        self._count = 0
        self._from: dict[str, dict[str, _Remembered]] = {}
        # By exchange on the route other than the first, and by key. The innermost dict is a set that keeps its order.
        self._via: dict[str, dict[str, dict[_Remembered, None]]] = {}

    def __len__(self) -> int:
        return self._count

    def find(self, source: str, key: str, without: Queue | None = None) -> Plan | None:
        remembered = self._from.get(source, {}).get(key)
        if remembered is None:
            return None
        return remembered.plan if without is None else remembered.without(without)

    def remember(self, plan: Plan, source: str, key: str, via: Iterable[str]) -> None:
        """`via` are the other exchanges it depends on. There must be no plan of this source and key."""
        if self._count >= self._plans_max:
            self.withdraw_all()
        remembered = _Remembered(plan, source, key, tuple(via))
        plans = self._from.setdefault(source, {})
        assert key not in plans
        plans[key] = remembered
        for name in remembered.via:
            self._via.setdefault(name, {}).setdefault(key, {})[remembered] = None
        self._count += 1

    def withdraw(self, exchange: str, key: str | None) -> None:
        """The plans that passed the exchange with this key (None: with any) no longer hold."""
        plans = self._from.get(exchange, {})
        passing = self._via.get(exchange, {})
        if key is not None:
            concerned = [plans[key]] if key in plans else []
            concerned.extend(passing.get(key, ()))
        else:
            concerned = list(plans.values())
            for remembered in passing.values():
                concerned.extend(remembered)
        for remembered_plan in concerned:
            self._forget(remembered_plan)

    def withdraw_all(self) -> None:
        for plans in self._from.values():
            for remembered in plans.values():
                remembered.withdraw()
        self._from.clear()
        self._via.clear()
        self._count = 0

    def _forget(self, remembered: _Remembered) -> None:
        remembered.withdraw()
        self._count -= 1
        plans = self._from[remembered.source]
        del plans[remembered.key]
        if not plans:
            del self._from[remembered.source]
        for name in remembered.via:
            by_key = self._via[name]
            passing = by_key[remembered.key]
            del passing[remembered]
            if not passing:
                del by_key[remembered.key]
                if not by_key:
                    del self._via[name]
