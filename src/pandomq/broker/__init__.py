"""The meaning of AMQP methods: exchanges, bindings, queues, channels, consumers. No I/O, no clock, no chance of its
own."""
