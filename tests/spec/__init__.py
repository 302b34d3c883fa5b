"""The requirements of AMQP 0-9-1, as RabbitMQ implements them, tested on the wire; one file per part of the
protocol."""
