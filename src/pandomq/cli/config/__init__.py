"""The configuration: its keys, the sources of their values, and the effective values.

An option beats the environment, the environment beats the file, the file beats the default. An unknown key is an error
that names the key, its source, and the key that was probably meant.
"""
