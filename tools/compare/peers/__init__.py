"""PandoMQ compared with RabbitMQ on one machine: starts both, runs the same loads on them, writes the page about it."""
