"""`make demo`: brokers, clients, a secondary that joins, a root that dies, jobs on Spark, an account, a report."""
