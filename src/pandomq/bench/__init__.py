"""The load generator: drives any AMQP 0-9-1 broker by URL and measures it from outside.

It knows nothing of PandoMQ's inside and speaks to PandoMQ as it speaks to any other broker, so that figures compare.
It is cheap: publishes are encoded once and sent again and again, deliveries are counted in whole reads.
Linux only: it uses epoll and reads /proc.
"""
