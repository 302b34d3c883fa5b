"""`pandomq ctl`: rabbitmqctl's commands."""
