"""The disk under a journal: threads, files, locks, and tools for stores."""
