"""The HTTP API in RabbitMQ's paths and shapes, metrics and health.

It reads frozen views of a node and changes it through local clients and commands; it never touches live objects. It
runs in the broker's own loop, so long work is done in slices with turns of the loop in between, and results that many
clients request are computed once.
"""
