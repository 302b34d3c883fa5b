"""What an operator and a data engineer get without writing Spark code: jobs, each with a summary and a report.

A job is a function that takes a session and says what came of it as a `Summary`; the command line shows that, and
writes it down.
"""
