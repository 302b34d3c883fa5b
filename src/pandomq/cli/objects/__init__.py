"""Commands that list, create and delete the objects of a broker: queues, users, vhosts, permissions, policies."""
