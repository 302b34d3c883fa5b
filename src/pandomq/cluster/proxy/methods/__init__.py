"""Methods that a front handles differently from other brokers, one file for each class."""
