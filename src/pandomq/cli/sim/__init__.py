"""`pandomq sim`: simulated worlds from seeds."""
