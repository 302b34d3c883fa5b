"""Whether a pattern of an administrator occurs in a name, in time that is linear in the name whatever the pattern.

Patterns come from people who may manage one vhost, and are matched with names that clients choose, in the event loop
that serves all clients. `(a+)+$` could block a matcher that backtracks. This one goes through the name once, from its
end to its beginning, with the set of the pattern's states from which the rest would match; sets are numbers, and the
steps between them are cached.

Guarded: the length of a pattern, its nesting, its number of states (repetitions count as often as they repeat), the
steps of one match (at most states times characters), the memory for cached steps. Not guarded: an administrator who
sets a thousand large patterns makes every declare try a thousand; the number of policies is limited for that.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple, assert_never

from pandomq.broker.administration.pattern_syntax import (
    Anchor,
    Characters,
    Choice,
    Lookaround,
    PatternError,
    Repeat,
    Sequence,
    Tree,
    parse,
)
from pandomq.limits import PATTERN_STATES_MAX, PATTERN_STEPS_CACHED_MAX, PATTERNS_CACHED_MAX

_BEGIN: Final = 1
_END: Final = 2
_VERY_END: Final = 4
_BOUNDARY: Final = 8
_BEHIND: Final = 16
"""The bit of the first lookbehind; those of others follow."""
_ANCHORS: Final = {"begin": _BEGIN, "end": _END, "very end": _VERY_END, "boundary": _BOUNDARY}


class _Condition(NamedTuple):
    """The condition of a step that takes no character: a context, or a state from which the rest matches."""

    context: int
    state: int
    negated: bool


class _Program(NamedTuple):
    """The states of the pattern itself, or of one lookahead."""

    states: int
    accepting: int


class Pattern:
    """Made by `compile_pattern`."""

    __slots__ = (
        "_accepted",
        "_asks_boundary",
        "_behind",
        "_consuming",
        "_into",
        "_prefix",
        "_prefix_is_all",
        "_programs",
        "_start",
        "_states",
        "_steps",
        "matches_all",
        "source",
    )

    def __init__(self, source: str, tree: Tree) -> None:
        self.source = source
        self._states = 0
        self._consuming: list[tuple[int, Characters, int]] = []
        self._into: dict[int, list[tuple[int, _Condition | None]]] = {}
        """By a state's bit: the states from which it is reached without a character."""
        self._programs: list[_Program] = []
        self._behind: list[Pattern] = []
        self._asks_boundary = False
        self._start = self._program(tree)
        self.matches_all = self._wants_nothing(self._start)
        """True for `.*`, which most patterns are."""
        # Most others are like `^orders\.` or `^orders\..*`: the beginning of a name decides.
        self._prefix, rest = _literal_prefix(tree)
        self._prefix_is_all = rest is not None and Pattern(source, rest).matches_all
        self._accepted: dict[str, list[tuple[int, int]]] = {}
        self._steps: dict[tuple[int, str, int], int] = {}

    def matches(self, name: str) -> bool:
        """Whether it matches anywhere in the name, unless it is anchored."""
        if self.matches_all:
            return True
        if not name.startswith(self._prefix):
            return False
        start = self._start
        return self._prefix_is_all or any(reached & start for reached in self._run(name))

    # Building.

    def _program(self, tree: Tree) -> int:
        # Inner programs are finished first, so their bits lie between those of the outer one: a mask separates them.
        before = self._states
        inner = len(self._programs)
        accepting = self._state()
        start = self._compile(tree, accepting)
        states = (1 << self._states) - (1 << before)
        for program in self._programs[inner:]:
            states &= ~program.states
        self._programs.append(_Program(states, accepting))
        return start

    def _state(self) -> int:
        if self._states >= PATTERN_STATES_MAX:
            raise PatternError("pattern is too large", len(self.source))
        self._states += 1
        return 1 << (self._states - 1)

    def _jump(self, *targets: int, condition: _Condition | None = None) -> int:
        state = self._state()
        for target in targets:
            self._into.setdefault(target, []).append((state, condition))
        return state

    def _compile(self, tree: Tree, then: int) -> int:
        """The state from which `tree` and after it `then` match."""
        match tree:
            case Characters():
                state = self._state()
                self._consuming.append((state, tree, then))
                return state
            case Sequence(items):
                for item in reversed(items):
                    then = self._compile(item, then)
                return then
            case Choice(branches):
                return self._jump(*[self._compile(branch, then) for branch in branches])
            case Repeat():
                return self._repeat(tree, then)
            case Anchor(kind, negated):
                self._asks_boundary |= kind == "boundary"
                return self._jump(then, condition=_Condition(_ANCHORS[kind], 0, negated))
            case Lookaround(item, behind, negated):
                if behind:
                    self._behind.append(Pattern(self.source, _reversed(item)))
                    condition = _Condition(_BEHIND << (len(self._behind) - 1), 0, negated)
                else:
                    condition = _Condition(0, self._program(item), negated)
                return self._jump(then, condition=condition)
            case _:
                assert_never(tree)

    def _repeat(self, tree: Repeat, then: int) -> int:
        item, low, high = tree
        if high is None:
            loop = self._jump(then)
            self._into.setdefault(self._compile(item, loop), []).append((loop, None))
            then = loop
        else:
            done = then
            for _ in range(high - low):
                then = self._jump(self._compile(item, then), done)
        for _ in range(low):
            # The jump costs a state even if the item is empty: that bounds the work here.
            then = self._jump(self._compile(item, then))
        return then

    def _wants_nothing(self, start: int) -> bool:
        """The end can be reached from there without a character, and on no condition."""
        pending = reached = self._programs[-1].accepting
        while pending:
            state = pending & -pending
            pending ^= state
            for source, condition in self._into.get(state, ()):
                if condition is None and not reached & source:
                    reached |= source
                    pending |= source
        return bool(reached & start)

    # Running.

    def _run(self, name: str) -> Iterator[int]:
        """The states from which the rest of the name matches: at its end, before its last character, and so on."""
        steps = self._steps
        contexts = self._contexts(name)
        reached = 0
        for position in range(len(name), -1, -1):
            key = (reached, name[position : position + 1], contexts.get(position, 0))
            known = steps.get(key)
            if known is None:
                if len(steps) >= PATTERN_STEPS_CACHED_MAX:
                    steps.clear()
                known = steps[key] = self._close(self._before(reached, key[1]), key[2])
            reached = known
            yield reached

    def _contexts(self, name: str) -> dict[int, int]:
        """By position, where there is any context."""
        size = len(name)
        contexts = {size: _END | _VERY_END}
        if name.endswith("\n"):
            contexts[size - 1] = _END
        contexts[0] = contexts.get(0, 0) | _BEGIN
        if self._asks_boundary:
            for position in range(size + 1):
                if _is_word(name[max(position - 1, 0) : position]) is not _is_word(name[position : position + 1]):
                    contexts[position] = contexts.get(position, 0) | _BOUNDARY
        for number, pattern in enumerate(self._behind):
            # Read from the end, the text before a position begins there.
            for position, reached in enumerate(pattern._run(name[::-1])):
                if reached & pattern._start:
                    contexts[position] = contexts.get(position, 0) | _BEHIND << number
        return contexts

    def _before(self, reached: int, character: str) -> int:
        if not character:
            return 0
        accepted = self._accepted.get(character)
        if accepted is None:
            accepted = [(state, then) for state, kind, then in self._consuming if kind.accept(character)]
            if len(self._accepted) < PATTERN_STEPS_CACHED_MAX:
                self._accepted[character] = accepted
        before = 0
        for state, then in accepted:
            if reached & then:
                before |= state
        return before

    def _close(self, reached: int, context: int) -> int:
        # Lookaheads come first: outer programs need their result at the same place.
        for program in self._programs:
            pending = reached & program.states | program.accepting
            reached |= pending
            while pending:
                state = pending & -pending
                pending ^= state
                for source, condition in self._into.get(state, ()):
                    if not reached & source and (condition is None or _holds(condition, reached, context)):
                        reached |= source
                        pending |= source
        return reached


def _holds(condition: _Condition, reached: int, context: int) -> bool:
    return bool(context & condition.context or reached & condition.state) is not condition.negated


def _literal_prefix(tree: Tree) -> tuple[str, Tree | None]:
    """The common prefix of all matching names, and the rest of the pattern; None if they cannot be separated."""
    items = tree.items if isinstance(tree, Sequence) else (tree,)
    if not items or items[0] != Anchor("begin"):
        return "", None
    prefix = ""
    for item in items[1:]:
        if not isinstance(item, Characters) or item.negated or item.any_case or len(item.ranges) != 1:
            break
        ((first, last),) = item.ranges
        if first != last:
            break
        prefix += first
    return prefix, Sequence(items[1 + len(prefix) :])


def _is_word(character: str) -> bool:
    return character == "_" or (character.isascii() and character.isalnum())


def _reversed(tree: Tree) -> Tree:
    """The reverse of a lookbehind's pattern: it matches the same text, read from its end."""
    match tree:
        case Characters():
            return tree
        case Sequence(items):
            return Sequence(tuple(_reversed(item) for item in reversed(items)))
        case Choice(branches):
            return Choice(tuple(map(_reversed, branches)))
        case Repeat(item, low, high):
            return Repeat(_reversed(item), low, high)
        case Anchor() | Lookaround():
            raise PatternError("lookbehind assertion may contain characters only", 0)
        case _:
            assert_never(tree)


@lru_cache(PATTERNS_CACHED_MAX)
def compile_pattern(source: str) -> Pattern:
    """Raises PatternError. Equal patterns share their cached steps."""
    return Pattern(source, parse(source))
