"""`pandomq pipeline rollup`: what the trace stream says, window by window.

Executors decode batches of events and add them up (`gathering`) to sums (`sums`), which is all that is kept of an open
window. When the watermark has passed its end a window is closed, and its sums become results (`results`) in the lake.
Each micro-batch is one step, which is decided as a whole (`steps`); the driver decides which batches of events count
(`intake`). The summary and the report (`story`) are made of results, and of the sums of windows that are still open.
"""
