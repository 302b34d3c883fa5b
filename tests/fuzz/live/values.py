"""Values at and beyond every bound, in the forms of the surfaces: octets of AMQP fields, and JSON."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from random import Random
from typing import Any, Final

import pandomq
from tests.support.fields import Typed, longstr, shortstr, table

NUMBERS: Final = tuple(
    sorted(
        {
            sign * (2**power + near)
            for power in (0, 7, 8, 15, 16, 31, 32, 53, 62, 63, 64)
            for near in (-1, 0, 1)
            for sign in (1, -1)
        }
    )
)
NAMES: Final = ("hostile.q0", "hostile.q1", "hostile.q2", "hostile.s0", "hostile.x0", "hostile.x1", "hostile.x2")
TEXTS: Final = (
    "",
    "\0",
    "a\0b",
    " ",
    "amq.gen-x",
    "amq.rabbitmq.reply-to",
    "amq.",
    "é\U0001f600",
    "k" * 127,
    "k" * 255,
    "#.*.#",
    "%2F",
    "../../etc",
    "1e999",
    "-1",
    "18446744073709551616",
    "first",
    "last",
    "next",
    "10D",
    "9" * 200 + "D",
    "(" * 60,
    "(a+)+$",
)
OCTETS: Final = (b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"\x80" * 255, b"hostile\xff")
"""Invalid UTF-8: among them a lone surrogate."""
DEEP: Final = (8, 40, 200, 3000)
_FIELD_NAME: Final = re.compile(r'"(x-[a-z-]+|alternate-exchange|hash-[a-z]+|CC|BCC|expires|max-[a-z-]+)"')
_HTTP_ONLY: Final = ("x-forwarded", "x-real", "x-client")


def _known_fields() -> tuple[str, ...]:
    """The names of all arguments and headers that the product's sources mention."""
    found: set[str] = set()
    for source in Path(pandomq.__file__).parent.rglob("*.py"):
        found |= set(_FIELD_NAME.findall(source.read_text()))
    return tuple(sorted(name for name in found if not name.startswith(_HTTP_ONLY)))


FIELDS: Final = _known_fields()
_RANGES: Final = {
    "b": (-(2**7), 2**7),
    "B": (0, 2**8),
    "s": (-(2**15), 2**15),
    "u": (0, 2**16),
    "I": (-(2**31), 2**31),
    "i": (0, 2**32),
    "l": (-(2**63), 2**63),
    "T": (0, 2**64),
}


def some_text(random: Random, *, deadly: bool = True) -> str | bytes:
    """Draws a text for AMQP, as up to 255 octets. A `deadly` value closes the client's connection."""
    chance = random.random()
    if chance < 0.6:
        return random.choice(NAMES)
    return random.choice(OCTETS) if deadly and chance > 0.9 else random.choice(TEXTS)


def some_number(random: Random, low: int, end: int) -> int:
    """Draws a value for a field of numbers from `low` up to `end`."""
    fitting = [number for number in NUMBERS if low <= number < end]
    return random.choice(fitting)


def some_field(random: Random, depth: int = 2) -> Any:
    """A value of any type that a field table may hold."""
    tag = random.choice("tbBsuIilfdTDSxVFA")
    if tag in _RANGES:
        return Typed(tag, some_number(random, *_RANGES[tag]))
    match tag:
        case "t":
            return random.random() < 0.5
        case "f":
            return Typed("f", random.choice([0.0, -1.0, float("nan"), float("inf"), -float("inf"), 3.4e38]))
        case "d":
            return random.choice([0.5, -0.0, float("nan"), float("inf"), -float("inf"), 1.7e308, 2.0**63])
        case "S":
            long = random.choice(["t" * 256, "t" * 5_000, "t" * 60_000, "9" * 5_000])
            return some_text(random) if random.random() < 0.95 else long
        case "x":
            return random.choice(OCTETS)
        case "F":
            return {} if not depth else some_table(random, depth - 1)
        case "A":
            return [] if not depth else [some_field(random, depth - 1) for _ in range(random.randint(0, 3))]
        case "D":
            # The tests' encoder has decimals within bounds only; these have any scale.
            return Typed("S", struct.pack(">Bi", random.choice([0, 1, 255]), random.choice([0, -(2**31), 2**31 - 1])))
        case _:
            return None


def some_table(random: Random, depth: int = 2) -> dict[str, Any]:
    names = [
        random.choice(FIELDS) if random.random() < 0.9 else random.choice(NAMES)
        for _ in range(random.choice([0, 1, 1, 2, 5]))
    ]
    return {name: some_field(random, depth) for name in names}


def delayed_table(random: Random) -> bytes:
    """Draws headers of a delayed message, or similar ones."""
    delay = random.choice([1, 20, "5", "9" * 5_000, 2**63 - 1, some_field(random, 0)])
    return table({**some_table(random), "x-delay": delay, "x-pandomq-delayed-expiration": some_field(random, 1)})


def encoded_table(random: Random, *, deadly: bool) -> bytes:
    """Draws a field table as octets; some `deadly` ones are no field table."""
    chance = random.random()
    if not deadly or chance < 0.6:
        return table(some_table(random))
    if chance < 0.7:
        return longstr(random.randbytes(random.choice([1, 5, 40])))
    if chance < 0.8:
        entry = shortstr(random.choice(FIELDS)) + b"I" + b"\0\0\0\1"
        return longstr(entry * random.choice([2, 300]))
    if chance < 0.9:
        return longstr(shortstr("x") + b"D" + struct.pack(">Bi", 255, -(2**31)))
    return longstr(_nested(random.choice(DEEP), in_array=random.random() < 0.5))


def _nested(depth: int, *, in_array: bool) -> bytes:
    inner = b""
    for _ in range(depth):
        inner = b"A" + longstr(inner) if in_array else shortstr("n") + b"F" + longstr(inner)
    return shortstr("n") + inner if in_array else inner


# JSON.

_JSON_TEXTS: Final = (*TEXTS, "\ud800", "a\udfff", "s" * 70_000)


def some_json(random: Random, depth: int = 2) -> Any:
    chance = random.random()
    if chance < 0.3:
        return random.choice(NUMBERS)
    if chance < 0.6:
        return random.choice(_JSON_TEXTS) if random.random() < 0.5 else random.choice(NAMES)
    if chance < 0.7:
        return random.choice([float("nan"), float("inf"), -float("inf"), 1.5, -0.0, 1e308])
    if chance < 0.8 or not depth:
        return random.choice([None, True, False, [], {}])
    if chance < 0.9:
        return [some_json(random, depth - 1) for _ in range(random.randint(1, 3))]
    return {
        random.choice((*FIELDS, *NAMES, "", "\ud800")): some_json(random, depth - 1)
        for _ in range(random.randint(1, 3))
    }


def encoded_json(random: Random, value: Any) -> bytes:
    """Returns the JSON of the value, sometimes damaged: cut short, with a duplicate name, too deep, or no UTF-8."""
    chance = random.random()
    if chance < 0.9:
        return json.dumps(value).encode("ascii")
    text = json.dumps(value)
    if chance < 0.92:
        return text[: random.randrange(len(text) + 1)].encode("ascii")
    if chance < 0.94 and isinstance(value, dict) and value:
        name = json.dumps(next(iter(value)))
        return f"{text[:-1]},{name}:{json.dumps(some_json(random, 0))}}}".encode("ascii")
    if chance < 0.96:
        depth = random.choice(DEEP)
        return b'{"n":' + b"[" * depth + b"]" * depth + b"}"
    if chance < 0.98:
        return text.encode("ascii").replace(b'"', b"\xff", 1)
    return random.choice([b"", b"0", b"[]", b"null", b'"', b"9" * 5_000, b"{}" * 3, b"\xef\xbb\xbf{}"])
