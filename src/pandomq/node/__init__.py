"""Joins wire, broker and log into one broker; still no I/O.

Bytes and ticks come in by `Node`'s methods, bytes and a closed set of controls go out with `Node.step`.
"""
