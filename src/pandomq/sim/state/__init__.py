"""Second definitions of a broker's state, for comparison with the state of brokers."""
