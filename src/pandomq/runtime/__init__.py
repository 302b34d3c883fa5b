"""Sockets, clock and signals around a node: too thin to be wrong.

Nothing here decides: bytes go into `node.Node`, bytes come out, time is told to it.
"""
