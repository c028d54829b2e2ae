"""Sites that share nothing, over a Flower network: guard, plan, coordinator and what carries them.

    coordinator                    Flower                        site (hospital)
    Coordinator ── link.py ──> SuperLink <── node.py ── Guard ── Part ── records
    (answers on disk)          (carries)               (checks, shows, spends, hides)

No code travels: the Flower app is two files without a line of Python, and neither side runs what
arrives. What travels is a message of `messages`, which the guard reads as data and answers or
refuses. Only `node`, `link`, `app` and `components` know Flower; the rest is the same over any
carrier.

| file | what it is |
|---|---|
| `card` | a site's public keys and number of rows, signed by itself |
| `plan` | who takes part, what is asked; the coordinator signs it, and sites sign its hash |
| `shared` | what may be asked, and who answers: `sums`, `owners`, `servers` |
| `offered` | the columns that a site offers |
| `messages` | what travels |
| `guard` | a site's side: only the plan's questions, paid, logged, hidden |
| `coordinator` | the other side: carries questions on, survives its own end |
| `site_folder`, `study_folder` | what each side keeps on its disk |
"""

from typing import TYPE_CHECKING

from dpfda._lazy import lazily

if TYPE_CHECKING:
    from dpfda.sites.inquiry import Inquiry as Inquiry
    from dpfda.sites.rehearsal import rehearse as rehearse
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "Inquiry": "dpfda.sites.inquiry",
            "rehearse": "dpfda.sites.rehearsal",
        },
    )
