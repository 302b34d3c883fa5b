"""Writes of batches and of streams: options, frames and staged parts."""
