"""Simulated people and curves, as the papers drew them. Their real data are in `dpfda_bench`."""

from dpfda.datasets.dataset import Dataset
from dpfda.datasets.simulated import SLOPE_001, simulate_001, simulate_003

__all__ = ["SLOPE_001", "Dataset", "simulate_001", "simulate_003"]
