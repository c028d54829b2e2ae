"""Guarantees, events, ledgers and audits. Nothing here sees data."""
