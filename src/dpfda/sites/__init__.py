"""Sites that share only sums, over a Flower network: guard, plan, coordinator, and the network.

    coordinator                          Flower                             site (hospital)
    Coordinator ── link.py ──> ServerApp, SuperLink <── SuperNode, ClientApp ── node.py ── Guard

Flower's own programs carry the messages, and run no code but `components` of this package. A
message is read as data by the guard, which answers or refuses it. Only `app`, `components`,
`link` and `node` know Flower; the rest is the same over any transport.

| file | contents |
|---|---|
| `identity` | a site's card: public keys and number of rows, signed by the site |
| `plan` | who takes part and what is asked; the coordinator signs it, and sites sign its hash |
| `shared` | what may be asked, and who answers: `sums`, `owners`, `servers` |
| `messages` | what is sent |
| `guard` | a site's side: only the plan's queries, paid for, logged, masked |
| `coordinator` | the other side: sends queries, and continues after a restart |
| `site_folder`, `study_folder` | what each side stores on disk |
| `app`, `components` | the Flower app, and what it runs |
| `node`, `link`, `processes` | a site's and a coordinator's Flower programs |
"""

from typing import TYPE_CHECKING

from dpfda._lazy import lazily

if TYPE_CHECKING:
    from dpfda import Inquiry as Inquiry
    from dpfda import rehearse as rehearse
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "dpfda": "Inquiry rehearse",
        },
    )
