"""Sockets, clock and signals around a node: a thin shell without decisions.

It passes bytes and the time into `node.Node`, and writes the bytes that come out.
"""
