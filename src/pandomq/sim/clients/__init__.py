"""The clients of a simulated broker. They use AMQP, in bytes."""
