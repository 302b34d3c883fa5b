"""Several real brokers, real faults and real clients: no fault breaks a promise."""
