"""The simulated runtime: disks, clocks and clients, determined by a seed, around the brokers of `pandomq start`."""
