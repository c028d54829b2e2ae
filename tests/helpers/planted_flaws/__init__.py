"""Flaws planted in shipped classes. To add one, call `plant` in one of these modules."""

from __future__ import annotations

from planted_flaws import answers, draws, spending
from planted_flaws.planting import PLANTED, ContractStep, Planted

__all__ = ["PLANTED", "ContractStep", "Planted", "answers", "draws", "spending"]
