"""The kinds of plans of sites. Each kind has three sides and one module.

| module | data of a site | queries | outgoing messages |
|---|---|---|---|
| `sums` | a table, one row per person | queries of a conversation | masked sums, opened together |
| `owners` | a table, several rows per owner | tasks of a boosting study | noisy shares of owners |
| `servers` | a finished study of its people | its model, evaluations | sums of noisy replies |

Each module defines an inquiry (the agreement), a part (the side of a site), and a function that
runs the side of the coordinator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from dpfda._registry import Registered
from dpfda.noise import Source
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.price import Price
from dpfda.protocol.secure_sum import Terms
from dpfda.report.documents import Documented
from dpfda.sites.identity import Card

if TYPE_CHECKING:  # these modules import the kinds of plans
    from dpfda.sites.coordinator import Coordinator
    from dpfda.sites.plan import Plan
    from dpfda.sites.site_folder import SiteFolder

Holds = Literal["rows", "owners", "a study"]
"""The kinds of data that a site can have."""
COUNTED: dict[Holds, str] = {"rows": "rows", "owners": "owners", "a study": "people"}
"""The word for the number on its card."""
Allow = Callable[[str], None]
"""Called with a description of the query before anything is spent: writes it to the journal, asks a
person if the site requires that, and raises an error to refuse."""


class Part(ABC):
    """The part of one site in a plan; only this object has access to the site's data.

    Attributes:
        steps: steps of the plan's messages; the first one begins a question.
        name: name of the site.
        rows: number of its records, as stated on its card.
    """

    steps: ClassVar[tuple[str, ...]]
    name: str
    rows: int

    @abstractmethod
    def answer(self, step: str, message: object, allow: Allow) -> object:
        """The reply to a step, or a refusal that contains no private value."""

    @abstractmethod
    def described(self, step: str, reply: object) -> str:
        """A description of the reply for a person at the site."""


class Facts(NamedTuple):
    """The facts on which a person at a site decides.

    Attributes:
        title: title of the result.
        unit: unit of protection: what one record belongs to, such as a person.
        most: the largest total cost for each unit.
        price: the cost in words.
    """

    title: str
    unit: str
    most: Price
    price: str


class SharedInquiry(
    Registered,
    ABC,
    family="shared inquiry",
    homes=(
        "dpfda.sites.sums",
        "dpfda.sites.owners",
        "dpfda.sites.servers",
    ),
):
    """The public queries that all sites of a plan agree to; they are included in its hash."""

    holds: ClassVar[Holds] = "rows"
    """The kind of data that sites must have."""

    masked: ClassVar[bool] = False
    """Whether answers are masked in a sum, so that the number of colluding sites matters."""

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Title of the result, unit of protection, and price."""

    @abstractmethod
    def check(self, cards: Sequence[Card]) -> None:
        """Refuse sites that do not fit the inquiry."""

    @abstractmethod
    def guarantee(self, terms: Terms) -> Guarantee:
        """The guarantee of each site's people."""

    @abstractmethod
    def part(self, plan: Plan, folder: SiteFolder, source: Source) -> Part:
        """The part of the site with this folder."""

    @abstractmethod
    def lead(self, coordinator: Coordinator) -> dict[str, Documented]:
        """Ask all queries; return the published results by name."""

    @abstractmethod
    def progress(self, account: Path, study: str) -> list[str]:
        """The progress of each query at a site, in words."""

    @property
    @abstractmethod
    def columns(self) -> dict[str, list[Any]]:
        """The columns that are read, each with its public range or categories."""
