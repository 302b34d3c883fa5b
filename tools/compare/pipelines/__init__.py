"""The jobs of `pandomq pipeline` on the data of three brokers."""
