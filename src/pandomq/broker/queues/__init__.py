"""Queues and their consumers: arguments, settings, dead letters, removal."""
