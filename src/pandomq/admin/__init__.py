"""The HTTP API in RabbitMQ's paths and shapes, metrics and health.

Reads frozen views of a node and asks it through local clients and commands; never touches what is alive in it. It runs
in the broker's own loop, so whatever may be long is done in slices with turns of the loop in between, and what many
ask for at once is made once.
"""
