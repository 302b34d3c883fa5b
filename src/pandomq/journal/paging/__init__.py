"""Pages: messages that are on the disk instead of in memory."""
