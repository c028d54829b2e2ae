"""dpfda."""
