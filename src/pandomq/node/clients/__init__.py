"""Clients of this broker over AMQP: accepting, logging in, reading, writing, closing."""
