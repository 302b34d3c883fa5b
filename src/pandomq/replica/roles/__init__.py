"""One file per role; `transitions` defines which role may follow which."""
