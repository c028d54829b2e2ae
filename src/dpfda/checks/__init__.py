"""Contracts that every registered class keeps, found through the registries."""
