"""`pandomq pipeline rollup`: statistics of the trace stream, window by window.

Executors decode batches of events and add them up (`gathering`) to sums (`sums`); only these are kept of an open
window. When the watermark has passed its end a window is closed, and its sums become results (`results`) in the lake.
Each micro-batch is one atomic step (`steps`); the driver decides which batches of events count (`intake`). The summary
and the report (`story`) are made from results, and from the sums of windows that are still open.
"""
