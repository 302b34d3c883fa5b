"""The load generator: drives any AMQP 0-9-1 broker by URL and measures it from outside.

It does not use PandoMQ's code and treats PandoMQ like any other broker, so that figures are comparable. It uses little
processor time: publishes are encoded once and sent repeatedly, deliveries are counted in whole reads. Linux only: it
uses epoll and reads /proc.
"""
