"""Opening and closing a store: a scan, repair of what a crash has left, a scan for tools."""
