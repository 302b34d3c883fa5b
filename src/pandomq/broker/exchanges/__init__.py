"""The types of exchange, one a file, and the catalogue that makes them by name."""
