"""Serving clients while another broker is the root: the front, its tunnels, and the leases under which it serves."""
