"""Snapshots: their form, writing, sending and receiving them."""
