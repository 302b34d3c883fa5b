"""A consumer that takes messages and never acks: a program for tests to kill. Arguments: URL, queue, how many."""

from __future__ import annotations

import sys
import time

import pika


def main(url: str, queue: str, count: int) -> None:
    channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
    for _ in zip(range(count), channel.consume(queue), strict=False):
        pass
    print("holding", flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
