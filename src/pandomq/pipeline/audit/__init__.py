"""`pandomq pipeline audit`: checks the brokers' guarantees with their logs and the clients' ledgers.

It reads the files of stores, never a broker, and writes nothing to them. It reports whatever it cannot judge.
"""
