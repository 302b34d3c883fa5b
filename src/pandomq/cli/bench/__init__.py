"""`pandomq bench`: loads and measurements on any AMQP 0-9-1 broker."""
