"""One file per role; `transitions` says which may follow which."""
