"""`pandomq pipeline`: jobs on Spark."""
