"""`pandomq cluster up`: a whole cluster on this machine, for trying it out, tests and small installations."""
