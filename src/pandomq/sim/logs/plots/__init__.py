"""Courses of events that turn on one rule each; `programme` has them all."""
