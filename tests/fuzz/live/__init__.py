"""A hostile client of all interfaces of running brokers, beside clients that must not be harmed.

`attack` sends batches of inputs over AMQP, to the data port and over HTTP, with values at and beyond every bound;
`bystanders` publish, consume and read all the while, and their account must balance. Each batch follows from the seed,
its surface and its number, so that one batch can be sent again alone.
"""
