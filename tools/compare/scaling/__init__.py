"""A plan for a large cluster, computed from measurements: docs/scaling.md."""
