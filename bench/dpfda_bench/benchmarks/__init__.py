"""One module a benchmark, found by its file name: ``GOALS`` and ``run(quick=False) -> Outcome``."""
