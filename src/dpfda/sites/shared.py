"""The kinds of plans of sites. Each kind has three sides and one module.

| package | what a site holds | what it is asked | what leaves |
|---|---|---|---|
| `sums` | a table, a row a person | queries of a conversation | masked sums, opened together |
| `owners` | a table, some rows an owner | requests of a boosting study | their noisy shares |
| `servers` | a finished study of its people | its model, evaluations | sums of noisy replies |

In each module, `inquiry` states the agreement, `part` is the side of a site, and `lead` is the
side of the coordinator.
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

if TYPE_CHECKING:  # these know what kinds there are, and import them
    from dpfda.sites.coordinator import Coordinator
    from dpfda.sites.plan import Plan
    from dpfda.sites.site_folder import SiteFolder

Holds = Literal["rows", "owners", "a study"]
"""What a site has."""
COUNTED: dict[Holds, str] = {"rows": "rows", "owners": "owners", "a study": "people"}
"""What its card counts, in a word."""
Allow = Callable[[str], None]
"""Called with a description of the query before anything is spent: writes it to the journal, asks a
person if the site requires that, and raises an error to refuse."""


class Part(ABC):
    """The part of one site in a plan; only this object has access to the site's data.

    Attributes:
        steps: of the plan's messages; the first one begins a question.
        name: the site's.
        rows: how many records it holds, as its card says.
    """

    steps: ClassVar[tuple[str, ...]]
    name: str
    rows: int

    @abstractmethod
    def answer(self, step: str, message: object, allow: Allow) -> object:
        """The reply to a step, or a refusal that holds no private value."""

    @abstractmethod
    def described(self, step: str, reply: object) -> str:
        """A description of the reply for a person at the site."""


class Facts(NamedTuple):
    """What a person at a site decides on.

    Attributes:
        title: of the result.
        unit: of protection: whose data one record is.
        most: the largest total cost for each unit.
        price: the same in words.
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
    """The queries that all sites of a plan agree to. Public, and included in the plan's hash."""

    holds: ClassVar[Holds] = "rows"
    """What it asks about."""

    masked: ClassVar[bool] = False
    """Whether answers are hidden in a sum: then it matters how many sites collude."""

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Result, unit and price."""

    @abstractmethod
    def check(self, cards: Sequence[Card]) -> None:
        """Refuse sites that it was not made for."""

    @abstractmethod
    def guarantee(self, terms: Terms) -> Guarantee:
        """The guarantee of each site's people."""

    @abstractmethod
    def part(self, plan: Plan, folder: SiteFolder, source: Source) -> Part:
        """The part of the site with this folder."""

    @abstractmethod
    def lead(self, coordinator: Coordinator) -> dict[str, Documented]:
        """Ask everything; what is published in the end, by name."""

    @abstractmethod
    def progress(self, account: Path, study: str) -> list[str]:
        """The progress of each query at a site, in words."""

    @property
    @abstractmethod
    def columns(self) -> dict[str, list[Any]]:
        """The columns it reads, each with the range or the categories that it takes for public."""
