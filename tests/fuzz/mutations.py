"""Mutations of a conversation: of bits, frames, channels, sizes, order."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.fuzz.conversations import Conversation
from tests.support.frames import frame

Mutation = Callable[[Random, Conversation, Conversation], None]
"""A function that changes the first conversation, perhaps with pieces of the second one."""


def flip_bits(random: Random, pieces: Conversation, _other: Conversation) -> None:
    place = random.randrange(len(pieces))
    spoiled = bytearray(pieces[place])
    for _ in range(random.choice([1, 1, 1, 4])):
        spoiled[random.randrange(len(spoiled))] ^= 1 << random.randrange(8)
    pieces[place] = bytes(spoiled)


def overwrite(random: Random, pieces: Conversation, _other: Conversation) -> None:
    place = random.randrange(len(pieces))
    spoiled = bytearray(pieces[place])
    start = random.randrange(len(spoiled))
    new = random.choice([b"\xff" * 4, b"\x00" * 4, b"\xce", b"\x7f\xff\xff\xff", random.randbytes(3)])
    spoiled[start : start + len(new)] = new
    pieces[place] = bytes(spoiled)


def cut_short(random: Random, pieces: Conversation, _other: Conversation) -> None:
    place = random.randrange(len(pieces))
    pieces[place] = pieces[place][: random.randrange(len(pieces[place]))]
    if random.random() < 0.5:
        del pieces[place + 1 :]


def duplicate(random: Random, pieces: Conversation, _other: Conversation) -> None:
    place = random.randrange(len(pieces))
    pieces[place:place] = [pieces[place]] * random.choice([1, 1, 3])


def leave_out(random: Random, pieces: Conversation, _other: Conversation) -> None:
    del pieces[random.randrange(len(pieces))]


def swap(random: Random, pieces: Conversation, _other: Conversation) -> None:
    one, two = random.randrange(len(pieces)), random.randrange(len(pieces))
    pieces[one], pieces[two] = pieces[two], pieces[one]


def splice(random: Random, pieces: Conversation, other: Conversation) -> None:
    start = random.randrange(len(other))
    taken = other[start : start + random.randint(1, 6)]
    place = random.randrange(len(pieces) + 1)
    pieces[place:place] = taken


def change_channel(random: Random, pieces: Conversation, _other: Conversation) -> None:
    place = random.randrange(len(pieces))
    channel = random.choice([0, 1, 2, 7, 2047, 2048, 65535])
    pieces[place] = pieces[place][:1] + channel.to_bytes(2, "big") + pieces[place][3:]


def change_size(random: Random, pieces: Conversation, _other: Conversation) -> None:
    place = random.randrange(len(pieces))
    size = int.from_bytes(pieces[place][3:7], "big")
    wrong = random.choice([0, 1, size - 1, size + 1, 4096, 131_065, 2**31, 2**32 - 1]) % 2**32
    pieces[place] = pieces[place][:3] + wrong.to_bytes(4, "big") + pieces[place][7:]


def insert_frame(random: Random, pieces: Conversation, _other: Conversation) -> None:
    pieces.insert(random.randrange(len(pieces) + 1), random_frame(random))


def insert_noise(random: Random, pieces: Conversation, _other: Conversation) -> None:
    pieces.insert(random.randrange(len(pieces) + 1), random.randbytes(random.choice([1, 3, 8, 60, 300])))


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits,
    flip_bits,
    overwrite,
    cut_short,
    duplicate,
    leave_out,
    swap,
    splice,
    change_channel,
    change_size,
    insert_frame,
    insert_noise,
)


def mutated(random: Random, corpus: list[Conversation]) -> bytes:
    """Returns a mutated conversation from the corpus, whole or only its beginning."""
    pieces, other = list(random.choice(corpus)), random.choice(corpus)
    for _ in range(random.choice([1, 1, 1, 2, 2, 5])):
        if pieces:
            random.choice(MUTATIONS)(random, pieces, other)
        pieces = [piece for piece in pieces if piece]
    return b"".join(pieces)


def random_frame(random: Random) -> bytes:
    """Draws a frame with a valid form and any content."""
    kind = random.choice([1, 1, 1, 2, 3, 8, 4, random.randrange(256)])
    channel = random.choice([0, 1, 1, 2, random.randrange(65536)])
    payload = random.randbytes(random.choice([0, 1, 4, 12, 14, 60, 500]))
    if kind == 1 and random.random() < 0.7:
        ids = (
            random.choice([10, 20, 40, 50, 60, 85, 90]),
            random.choice([10, 11, 20, 21, 30, 31, 40, 50, 51, 60, 70, 80]),
        )
        payload = ids[0].to_bytes(2, "big") + ids[1].to_bytes(2, "big") + payload
    return frame(kind, channel, payload)
