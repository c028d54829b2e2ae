"""Sites that share only sums, over a Flower network: guard, plan, coordinator, and the network.

    coordinator                          Flower                             site (hospital)
    Coordinator ── link.py ──> ServerApp, SuperLink <── SuperNode, ClientApp ── node.py ── Guard

Flower's own programs transport the messages. The only code that they run is `components` of this
package. The guard decodes a message as data, and answers or refuses it. Only `app`, `components`,
`link` and `node` depend on Flower; the other modules work with any transport.

| file | contents |
|---|---|
| `identity` | a site's card: public keys and number of rows, signed by the site |
| `plan` | the participants and the queries; the coordinator signs it, and sites sign its hash |
| `shared` | the interface of the kinds of plans: `sums`, `owners`, `servers` |
| `messages` | the messages between coordinator and sites |
| `guard` | a site's side: answers only the plan's queries, after payment, and logs them |
| `coordinator` | the coordinator's side: sends queries, and continues after a restart |
| `site_folder`, `study_folder` | what each side stores on disk |
| `app`, `components` | the Flower app, and the code that it runs |
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
