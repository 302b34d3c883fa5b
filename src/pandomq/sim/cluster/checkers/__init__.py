"""What must hold where there are several brokers, one promise a file."""
