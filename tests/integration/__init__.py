"""Real clients over real sockets against a real broker process."""
