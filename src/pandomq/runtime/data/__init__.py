"""The data port's sockets and listeners."""
