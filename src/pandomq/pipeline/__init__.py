"""Ready-made Spark jobs for operators and data engineers, each with a summary and a report.

A job is a function that takes a session and returns a `Summary`; the command line shows that, and writes it to a file.
"""
