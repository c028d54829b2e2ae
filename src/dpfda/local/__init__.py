"""Studies in which people answer for themselves."""
