"""Guarantees, events, accounting, ledgers and audits. Nothing here sees data."""
