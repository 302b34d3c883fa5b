"""The user of a request, and the rights that it needs."""
