"""What AMQP 0-9-1 asks of a broker, as RabbitMQ understands it, seen on the wire; one file per part of the protocol."""
