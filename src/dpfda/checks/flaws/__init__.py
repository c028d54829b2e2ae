"""The flaws that `dpfda audit --twins` plants in classes that ship. A new one is one call here."""

from __future__ import annotations

from dpfda.checks.flaws import answers, draws, spending

__all__ = ["answers", "draws", "sizes", "spending"]
