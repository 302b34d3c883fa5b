"""The promises that must hold in worlds with several brokers, one per file."""
