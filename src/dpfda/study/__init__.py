"""Benchmarks, reproductions, plots and reports: everything that measures."""
