"""Guarantees, events, ledgers and audits. Nothing here sees data."""

from typing import TYPE_CHECKING

from dpfda._lazy import lazily

if TYPE_CHECKING:
    from dpfda.privacy.guarantee import Guarantee as Guarantee
    from dpfda.privacy.ledger import Ledger as Ledger
    from dpfda.privacy.ledger_file import FileLedger as FileLedger
    from dpfda.privacy.tally import budget as budget
    from dpfda.privacy.tally import spent as spent
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "FileLedger": "dpfda.privacy.ledger_file",
            "Guarantee": "dpfda.privacy.guarantee",
            "Ledger": "dpfda.privacy.ledger",
            "budget": "dpfda.privacy.tally",
            "spent": "dpfda.privacy.tally",
        },
    )
