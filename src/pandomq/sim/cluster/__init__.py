"""Worlds of several brokers: the same machines, clients and checkers, and a network between the machines."""
