"""The second runtime: disks, clocks and clients that follow from a seed, around the brokers that `pandomq start` runs."""
