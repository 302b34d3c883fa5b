"""Worlds of bare logs: replicas on journals, without brokers. Quick, and all about election and replication."""
