"""A plan on paper for a large cluster, computed from what was measured: docs/scaling.md."""
