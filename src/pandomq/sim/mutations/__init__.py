"""Bugs, planted on purpose: a simulator that does not find them would not find others.

None is active unless asked for by name, and all are taken out again afterwards.
"""
