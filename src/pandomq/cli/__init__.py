"""What a person types: `pandomq start`, `pandomq bench`, …; reads options and environment, prints, and calls the rooms
below.
"""
