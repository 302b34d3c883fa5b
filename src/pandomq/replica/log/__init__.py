"""The log between brokers: sending, appending, catching up, and the decision that an entry is committed."""
