"""The promises that must hold in every world of logs, one per file."""
