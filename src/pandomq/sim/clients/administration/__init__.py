"""Clients that change users, rights, policies, vhosts, exchanges and traces, and clients that try the changes."""
