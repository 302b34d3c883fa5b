"""The jobs of `pandomq pipeline` on what three brokers hold. tools/bench_pipelines.py measures."""
