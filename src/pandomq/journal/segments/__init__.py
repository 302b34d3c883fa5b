"""The files of the log: appending, reading, cutting and reclaiming entries."""
