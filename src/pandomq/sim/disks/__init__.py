"""Simulated disks: requests that take time, and files that lose unsynced data in a crash."""
