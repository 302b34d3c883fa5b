"""The configuration: what keys there are, where their values come from, and what holds in the end.

An option beats the environment, the environment beats the file, the file beats the default. Nothing unknown is passed
over in silence: it is an error that names what was written, where, and what was probably meant.
"""
