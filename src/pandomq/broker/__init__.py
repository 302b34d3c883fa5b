"""What a broker means: exchanges, bindings, queues, channels, consumers. Pure: bytes and time come in, bytes and a proposal go out."""
