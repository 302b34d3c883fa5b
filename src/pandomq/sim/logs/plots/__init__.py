"""Plots that each test one rule; `programme` lists them all."""
