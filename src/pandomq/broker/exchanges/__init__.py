"""The types of exchange, one per file, and the catalogue that makes them by name."""
