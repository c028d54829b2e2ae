"""The papers' tables and figures, their data, and the benchmarks of `dpfda`."""
