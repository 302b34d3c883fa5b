"""The messages between replicas, and the entries and excerpts that they carry."""
