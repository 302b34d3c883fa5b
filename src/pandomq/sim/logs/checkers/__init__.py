"""What must hold in every world of logs, one promise a file."""
