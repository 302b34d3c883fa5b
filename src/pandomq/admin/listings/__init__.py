"""Listings: tables of queues, connections and other objects, in RabbitMQ's shape, and the pages that requests get."""
