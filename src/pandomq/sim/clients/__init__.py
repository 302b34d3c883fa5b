"""Those who use a simulated broker. They speak AMQP, in bytes."""
