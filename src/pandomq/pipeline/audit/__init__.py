"""`pandomq pipeline audit`: what brokers' logs and clients' ledgers prove of what was promised.

It reads the files of stores, never a broker; nothing is written to them. What cannot be judged is said to be so.
"""
