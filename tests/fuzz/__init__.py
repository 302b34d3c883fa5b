"""Hostile inputs: mutated conversations, random frames, random methods.

They go to a node in this process, and over sockets to a running broker. Everything is drawn from a seed, so that a
failure can be repeated: `tools/fuzz.py` prints the command.
"""
