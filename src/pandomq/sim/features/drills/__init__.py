"""Features that wait until the world has healed, and then disturb brokers that are otherwise well."""
