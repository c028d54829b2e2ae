"""Simulations of the papers, and loaders of their real data.

Every `load_*` of `loaders` takes `path` (the file or its folder; by default the folder named by
DPFDA_DATA), checks the contents of the file (`verify=False` for your own conversion) and, if it is
missing, states where to get it. No data are included.
"""

from dpfda.datasets.catalogue import Dataset
from dpfda.datasets.simulated import SLOPE_001, simulate_001, simulate_003

__all__ = ["SLOPE_001", "Dataset", "simulate_001", "simulate_003"]
