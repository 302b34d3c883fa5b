"""Publishes: routing, checks, transactions, deduplication, delayed and returned messages."""
