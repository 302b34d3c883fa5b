"""Optional parts of a simulated world, beside its usual clients and faults; a seed draws some of them."""
