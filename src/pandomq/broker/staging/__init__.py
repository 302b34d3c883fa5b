"""Batches of publishes that are staged first, invisible, and published once and for all (D11)."""
