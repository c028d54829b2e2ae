"""Guarantees, events, ledgers and audits. Nothing here sees data."""

from typing import TYPE_CHECKING

from dpfda._lazy import lazily

if TYPE_CHECKING:
    from dpfda import Guarantee as Guarantee
    from dpfda import Ledger as Ledger
    from dpfda import budget as budget
    from dpfda import spent as spent
    from dpfda.privacy.ledger_file import FileLedger as FileLedger
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "dpfda": "Guarantee Ledger budget spent",
            "dpfda.privacy.ledger_file": "FileLedger",
        },
    )
