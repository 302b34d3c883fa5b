"""The regular expressions of permissions and policies, read into a tree.

The dialect is that of RabbitMQ's patterns, as far as a match in linear time allows: text, classes, groups,
alternatives, repetitions, anchors, word boundaries, lookahead, and lookbehind without anything of that kind inside it.
Refused, with a reason: back-references to a group, possessive and atomic forms, recursion, conditions.
"""

from typing import Final, NamedTuple, TypeAlias

from pandomq.limits import PATTERN_BYTES_MAX

GROUP_DEPTH_MAX: Final = 50
REPEAT_MAX: Final = 65_535


class PatternError(ValueError):
    """The error, and the position of its character."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset

    def __str__(self) -> str:
        return f'{{"{self.reason}",{self.offset}}}'


class Characters(NamedTuple):
    """One character out of these ranges, or out of all others."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False
    any_case: bool = False

    def accept(self, character: str) -> bool:
        found = self._has(character)
        if self.any_case and not found:
            found = self._has(character.lower()) or self._has(character.upper())
        return found is not self.negated

    def _has(self, character: str) -> bool:
        return any(first <= character <= last for first, last in self.ranges)


class Sequence(NamedTuple):
    items: tuple["Tree", ...]


class Choice(NamedTuple):
    branches: tuple["Tree", ...]


class Repeat(NamedTuple):
    item: "Tree"
    low: int
    high: int | None


class Anchor(NamedTuple):
    """`kind` is "begin", "end" (or before a last line end), "very end" or "boundary"."""

    kind: str
    negated: bool = False


class Lookaround(NamedTuple):
    item: "Tree"
    behind: bool
    negated: bool


Tree: TypeAlias = Characters | Sequence | Choice | Repeat | Anchor | Lookaround

_DIGIT: Final = (("0", "9"),)
_SPACE: Final = ((" ", " "), ("\t", "\r"))
_WORD: Final = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
_SETS: Final = {"d": _DIGIT, "s": _SPACE, "w": _WORD, "h": ((" ", " "), ("\t", "\t"))}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_ANCHORS: Final = {
    "A": Anchor("begin"),
    "Z": Anchor("end"),
    "z": Anchor("very end"),
    "b": Anchor("boundary"),
    "B": Anchor("boundary", True),
}
_NAMED_SETS: Final = {
    "alnum": (("0", "9"), ("A", "Z"), ("a", "z")),
    "alpha": (("A", "Z"), ("a", "z")),
    "blank": ((" ", " "), ("\t", "\t")),
    "digit": _DIGIT,
    "lower": (("a", "z"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": _SPACE,
    "upper": (("A", "Z"),),
    "word": _WORD,
    "xdigit": (("0", "9"), ("A", "F"), ("a", "f")),
}
_LOOKS: Final = {"?=": (False, False), "?!": (False, True), "?<=": (True, False), "?<!": (True, True)}
_HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")
_LAST: Final = "\U0010ffff"


def parse(source: str) -> Tree:
    """Raises PatternError."""
    if len(source.encode("utf-8", "surrogatepass")) > PATTERN_BYTES_MAX:
        raise PatternError(f"pattern is longer than {PATTERN_BYTES_MAX} bytes", PATTERN_BYTES_MAX)
    reader = _Reader(source)
    tree = reader.choice(0)
    if reader.position < len(source):
        raise PatternError("unmatched parentheses", reader.position)
    return tree


class _Reader:
    """Recursive descent; every method leaves `position` after what it read."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.position = 0
        self._any_case = False
        self._dot_is_all = False

    def _peek(self, text: str) -> bool:
        return self.source.startswith(text, self.position)

    def _skip(self, text: str) -> bool:
        found = self._peek(text)
        if found:
            self.position += len(text)
        return found

    def _error(self, reason: str) -> PatternError:
        return PatternError(reason, self.position)

    def choice(self, depth: int) -> Tree:
        if depth > GROUP_DEPTH_MAX:
            raise self._error("parentheses are too deeply nested")
        # Options that are set inside a group end with it.
        options = self._any_case, self._dot_is_all
        branches = [self._sequence(depth)]
        while self._skip("|"):
            branches.append(self._sequence(depth))
        self._any_case, self._dot_is_all = options
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _sequence(self, depth: int) -> Tree:
        items: list[Tree] = []
        while self.position < len(self.source) and self.source[self.position] not in "|)":
            item = self._item(depth)
            if item is not None:
                items.append(self._repeated(item))
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _repeated(self, item: Tree) -> Tree:
        while (counts := self._counts()) is not None:
            # Whether a repetition is greedy does not change whether there is a match.
            if not self._skip("?") and self._peek("+"):
                raise self._error("possessive repetition is not supported")
            item = Repeat(item, *counts)
        return item

    def _counts(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._skip(sign):
                return counts
        if not self._peek("{"):
            return None
        inside, closed, _ = self.source[self.position + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        if not closed or not _is_number(low) or not (high == "" or _is_number(high)):
            return None  # a literal brace
        least = int(low)
        most = least if not comma else int(high) if high else None
        if max(least, most or 0) > REPEAT_MAX:
            raise self._error("number too big in {} quantifier")
        if most is not None and most < least:
            raise self._error("numbers out of order in {} quantifier")
        self.position += len(inside) + 2
        return least, most

    def _item(self, depth: int) -> Tree | None:
        start = self.position
        character = self.source[start]
        self.position += 1
        match character:
            case "(":
                return self._group(depth)
            case "[":
                return self._set(start)
            case "\\":
                return self._escape()
            case ".":
                return Characters((), True) if self._dot_is_all else Characters((("\n", "\n"),), True)
            case "^":
                return Anchor("begin")
            case "$":
                return Anchor("end")
            case "*" | "+" | "?":
                raise PatternError("nothing to repeat", start)
            case _:
                return self._one(character)

    def _one(self, character: str) -> Characters:
        return Characters(((character, character),), False, self._any_case)

    def _group(self, depth: int) -> Tree | None:
        if self._skip("?#"):
            self._until(")", "missing ) after comment")
            return None
        options = self._any_case, self._dot_is_all
        look = next((kind for opening, kind in _LOOKS.items() if self._skip(opening)), None)
        if look is None and self._skip("?") and not self._named() and not self._options():
            return None
        item = self.choice(depth + 1)
        if not self._skip(")"):
            raise self._error("missing )")
        self._any_case, self._dot_is_all = options
        return item if look is None else Lookaround(item, *look)

    def _named(self) -> bool:
        for opening, closing in (("P<", ">"), ("<", ">"), ("'", "'")):
            if self._skip(opening):
                wrong = "syntax error in subpattern name (missing terminator)"
                if not self._until(closing, wrong).isidentifier():
                    raise self._error(wrong)
                return True
        return False

    def _options(self) -> bool:
        """Reads the options between `(?` and `:` or `)`; False if the group has nothing else."""
        switched_on = True
        while not self._skip(":"):
            if self._skip(")"):
                return False
            if self._skip("-"):
                switched_on = False
            elif self._skip("i"):
                self._any_case = switched_on
            elif self._skip("s"):
                self._dot_is_all = switched_on
            else:
                raise self._error("this kind of group is not supported")
        return True

    def _until(self, end: str, missing: str) -> str:
        found = self.source.find(end, self.position)
        if found < 0:
            raise PatternError(missing, len(self.source))
        text = self.source[self.position : found]
        self.position = found + len(end)
        return text

    def _escape(self) -> Tree:
        letter = self.source[self.position : self.position + 1]
        if letter in _ANCHORS:
            self.position += 1
            return _ANCHORS[letter]
        escaped = self._escaped()
        return self._one(escaped) if isinstance(escaped, str) else escaped

    def _escaped(self) -> str | Characters:
        """Reads what follows a backslash, in a class or outside: one character, or a set of them."""
        if self.position == len(self.source):
            raise self._error("\\ at end of pattern")
        letter = self.source[self.position]
        self.position += 1
        if letter.lower() in _SETS:
            return Characters(_SETS[letter.lower()], letter.isupper())
        if letter == "x":
            return self._by_number()
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isalnum():
            self.position -= 1
            raise self._error(f"\\{letter} is not supported")
        return letter

    def _by_number(self) -> str:
        if self._skip("{"):
            digits = self._until("}", "missing terminating } after \\x{")
        else:
            digits = self.source[self.position : self.position + 2]
            self.position += len(digits)
        number = int(digits, 16) if 1 <= len(digits) <= 6 and _HEXADECIMAL.issuperset(digits) else -1
        if not 0 <= number <= ord(_LAST):
            raise self._error("the character number is out of range")
        return chr(number)

    # Classes.

    def _set(self, start: int) -> Characters:
        negated = self._skip("^")
        ranges: list[tuple[str, str]] = []
        first = True
        while first or not self._peek("]"):
            if self.position == len(self.source):
                raise PatternError("missing terminating ] for character class", start)
            first = False
            ranges.extend(self._range())
        self.position += 1
        return Characters(tuple(ranges), negated, self._any_case)

    def _range(self) -> tuple[tuple[str, str], ...]:
        low = self._member()
        if isinstance(low, tuple):
            return low
        if not self._peek("-") or self.source.startswith("-]", self.position):
            return ((low, low),)
        self.position += 1
        if self.position == len(self.source):
            return ((low, low),)
        high = self._member()
        if isinstance(high, tuple):
            # As in `[a-\d]`, the dash is literal.
            return ((low, low), ("-", "-"), *high)
        if high < low:
            raise self._error("range out of order in character class")
        return ((low, high),)

    def _member(self) -> str | tuple[tuple[str, str], ...]:
        if self._peek("[:"):
            name, closed, _ = self.source[self.position + 2 :].partition(":]")
            positive = name.removeprefix("^")
            if closed and positive.isalpha():
                if positive not in _NAMED_SETS:
                    raise self._error("unknown POSIX class name")
                self.position += len(name) + 4
                ranges = _NAMED_SETS[positive]
                return ranges if name == positive else _others(ranges)
        character = self.source[self.position]
        self.position += 1
        if character != "\\":
            return character
        if self._skip("b"):
            return "\b"
        escaped = self._escaped()
        if isinstance(escaped, str):
            return escaped
        return _others(escaped.ranges) if escaped.negated else escaped.ranges


def _others(ranges: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Everything outside of the ranges."""
    gaps: list[tuple[str, str]] = []
    begin = 0
    for first, last in sorted(ranges):
        if begin < ord(first):
            gaps.append((chr(begin), chr(ord(first) - 1)))
        begin = ord(last) + 1
    return (*gaps, (chr(begin), _LAST))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
