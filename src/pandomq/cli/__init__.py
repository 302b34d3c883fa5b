"""The commands: `pandomq start`, `pandomq bench`, …; they read options and environment, print, and call lower rooms."""
