"""A small AMQP 0-9-1 client for tests, written from the specification and from nothing in src/pandomq.

It is independent on purpose: a mistake that the broker's own codec and this one shared would not be noticed.
"""
