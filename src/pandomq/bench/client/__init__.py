"""The AMQP client of the load generator."""
