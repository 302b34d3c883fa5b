"""Several real brokers, real faults and real clients: whatever is pulled, nothing that was promised is broken."""
