"""PandoMQ against RabbitMQ on one machine: starts both, puts the same loads on them, writes the page about it."""
