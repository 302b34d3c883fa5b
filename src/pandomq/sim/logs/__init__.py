"""Worlds of logs: replicas on journals, without brokers. They are quick, and test election and replication alone."""
