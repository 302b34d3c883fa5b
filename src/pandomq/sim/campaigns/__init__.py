"""Runs of many seeds: their outcomes, the file of results, and the shrinking of broken worlds."""
