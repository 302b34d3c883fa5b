"""What must hold of replicas and their logs, whatever runs on them: looked at after each step, one promise a file."""
