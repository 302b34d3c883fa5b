"""The topic exchange: keys are words separated by dots; in a binding's key * stands for one word, # for any number.

The patterns form a trie, one edge per word. The exchange follows a routing key through it as through a finite
automaton: at each word there is a set of nodes that the words so far can reach. So the cost depends on the patterns
that match a beginning of the key, never on those that do not, and patterns with many # cost no more than their length.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pandomq.broker.exchanges.binding import Binding, Destination
from pandomq.broker.exchanges.exchange import DestinationCounts, Exchange, ExchangeTraits

ONE_WORD: Final = "*"
ANY_WORDS: Final = "#"

_NO_CHILDREN: Final[Mapping[str, "_Node"]] = {}


class _Node:
    """The node that the words of a pattern so far reach."""

    __slots__ = ("any_words", "children", "destinations", "one_word")

    def __init__(self) -> None:
        self.children: Mapping[str, _Node] = _NO_CHILDREN  # Most nodes are leaves, and have no dict of their own.
        self.one_word: _Node | None = None
        self.any_words: _Node | None = None
        self.destinations: DestinationCounts | None = None

    def child(self, word: str) -> "_Node":
        """The node one word further, made if need be."""
        if word == ONE_WORD:
            if self.one_word is None:
                self.one_word = _Node()
            return self.one_word
        if word == ANY_WORDS:
            if self.any_words is None:
                self.any_words = _Node()
            return self.any_words
        node = self.children.get(word)
        if node is None:
            node = _Node()
            if isinstance(self.children, dict) and self.children is not _NO_CHILDREN:
                self.children[word] = node
            else:
                self.children = {word: node}
        return node

    def existing_child(self, word: str) -> "_Node":
        node = self.one_word if word == ONE_WORD else self.any_words if word == ANY_WORDS else self.children[word]
        assert node is not None, "a binding's path exists while the binding does"
        return node

    def forget(self, word: str) -> None:
        if word == ONE_WORD:
            self.one_word = None
        elif word == ANY_WORDS:
            self.any_words = None
        else:
            assert isinstance(self.children, dict)
            del self.children[word]

    @property
    def useless(self) -> bool:
        return not (self.destinations or self.children or self.one_word or self.any_words)


class TopicExchange(Exchange):
    type_name = "topic"

    def __init__(self, name: str, traits: ExchangeTraits) -> None:
        super().__init__(name, traits)
        self._root = _Node()

    def match(self, routing_key: str, headers: Mapping[str, object]) -> Iterable[Destination]:
        # A node behind a # stays reachable for all words that follow, so those are collected once and kept. All others
        # have exactly one path to them, from their parent at the word before: no node is ever listed twice.
        behind_any: list[_Node] = []
        seen: set[_Node] = set()
        here = [self._root]
        if self._root.any_words is not None:
            _follow_any(self._root, behind_any, seen)
        for word in _words(routing_key):
            ahead: list[_Node] = []
            for nodes in (here, behind_any):
                for node in nodes:
                    child = node.children.get(word)
                    if child is not None:
                        ahead.append(child)
                    if node.one_word is not None:
                        ahead.append(node.one_word)
            for node in ahead:
                if node.any_words is not None:
                    _follow_any(node, behind_any, seen)
            if not ahead and not behind_any:
                return ()
            here = ahead
        found: list[Destination] = []
        for nodes in (here, behind_any):
            for node in nodes:
                if node.destinations is not None:
                    found.extend(node.destinations)
        return found

    def key_of(self, binding: Binding) -> str | None:
        words = binding.routing_key.split(".")
        return None if ONE_WORD in words or ANY_WORDS in words else binding.routing_key

    def _add(self, binding: Binding) -> None:
        node = self._root
        for word in _words(binding.routing_key):
            node = node.child(word)
        if node.destinations is None:
            node.destinations = DestinationCounts()
        node.destinations.add(binding.destination)

    def _drop(self, binding: Binding) -> None:
        node = self._root
        way: list[tuple[_Node, str]] = []
        for word in _words(binding.routing_key):
            way.append((node, word))
            node = node.existing_child(word)
        assert node.destinations is not None
        node.destinations.drop(binding.destination)
        if not node.destinations:
            node.destinations = None
        while way and node.useless:
            node, word = way.pop()
            node.forget(word)


def _words(key: str) -> list[str]:
    # The empty key has no words, as in RabbitMQ: * does not match it.
    return key.split(".") if key else []


def _follow_any(node: _Node, behind_any: list[_Node], seen: set[_Node]) -> None:
    # A # may stand for no word at all, so what is behind it is reached at once, and what is behind a second # as well.
    behind = node.any_words
    while behind is not None and behind not in seen:
        seen.add(behind)
        behind_any.append(behind)
        behind = behind.any_words
