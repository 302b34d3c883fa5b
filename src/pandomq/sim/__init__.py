"""The other runtime: a simulated network, disk and clock under the production code.

Will hold the workload, the faults (loss, partitions, stalls, torn and misdirected writes, crashes), and the checkers
that compare what clients saw with what was promised. A seed replays a run exactly, on either kernel.
"""
