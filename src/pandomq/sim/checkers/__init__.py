"""What must hold in every world, one promise a file."""
