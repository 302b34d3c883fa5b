"""The links to other brokers: dialing, accepting, relaying, and the messages that cross them."""
