"""Planted bugs: deliberate errors that the simulator must find, as evidence that it would find others.

None is active unless requested by name, and all are removed afterwards. `python -m tools.planted_bugs` runs worlds with
them.
"""
