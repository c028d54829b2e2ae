"""Servers that share models: each judges all of them by its own people's replies."""
