"""One file for each class of methods: what a client's request means."""
