"""Private queues of a front's clients, and what the root knows of them."""
