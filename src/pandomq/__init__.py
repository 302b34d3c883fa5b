"""PandoMQ: a message broker that implements AMQP 0-9-1 with RabbitMQ's extensions.

The modules of this directory are the vocabulary: ids, errors, limits, the protocol's nouns. They import nothing else of
the package. Each directory is a room; ARCHITECTURE.md describes the rooms and their allowed imports.
"""

__version__ = "0.1.0"
