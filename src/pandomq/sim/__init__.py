"""The second runtime: disks, clocks and clients that follow from a seed, around the brokers of `pandomq start`."""
