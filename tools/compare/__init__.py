"""Compares PandoMQ with RabbitMQ and with its own earlier figures; writes docs/benchmarks.md and docs/scaling.md.

The loads come from `pandomq.bench`. Each package is a program: `python -m tools.compare.peers`; likewise `clusters`,
`streams`, `spark` and `pipelines`.
"""
