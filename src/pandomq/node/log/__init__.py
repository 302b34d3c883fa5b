"""The log of this broker: replica and journal joined, the application of entries, snapshots, pages and recovery."""
