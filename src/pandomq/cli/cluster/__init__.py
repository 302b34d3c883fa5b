"""`pandomq cluster up`: a whole cluster on this machine, for a look at it, tests and small installations."""
