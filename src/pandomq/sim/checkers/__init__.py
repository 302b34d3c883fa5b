"""The promises that must hold in every world, one per file."""
