"""Everyday loads: some messages a second, each in a packet of its own, beside RabbitMQ."""
