"""Public descriptions of a release: a paragraph for a paper, a record for a registry.

Both consist of public facts and the guarantee of the release.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpfda._registry import plain
from dpfda._version import __version__
from dpfda.errors import InvalidParameter
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.ledger import BaseLedger

_DEFINITION = "Dwork, McSherry, Nissim & Smith, Calibrating noise to sensitivity, TCC 2006"
_GAUSSIAN = "Balle & Wang, Improving the Gaussian mechanism, ICML 2018"
_COMPOSED = "Dong, Roth & Su, Gaussian differential privacy, JRSS B 84, 2022"
_LOCAL = "Kasiviswanathan et al., What can we learn privately?, SIAM J. Comput. 40, 2011"
_EXACT = "Canonne, Kamath & Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020"
_TRUST = {
    "central": "a trusted curator holds the data and adds the noise",
    "local": "every person adds the noise before anything leaves their device",
    "decentralized": "sites hold their own data and add shares of the noise under a secure sum",
}
_NOISE = {
    "exact": "Noise was drawn exactly, on public lattices, from the operating system's entropy.",
    "simulation": "Noise was drawn from a seed: this is a simulation and protects nobody.",
    "unknown": "Noise was drawn by those who are protected.",
}


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """Public facts about one release.

    Attributes:
        product: what was released, in words: ``the mean of curves``.
        mechanism: name of the method that spent the budget.
        guarantee: the promise.
        records: number of records, if it is public.
        domain: public ranges and bounds of the values, by name.
        computed: sentences on what is computed from the release at no further cost.
    """

    product: str
    mechanism: str
    guarantee: Guarantee
    records: int | None = None
    domain: Mapping[str, Any]
    computed: str = ""

    @property
    def flavor(self) -> str:
        """ε-, or (ε, δ)-differential privacy."""
        return f"{'(ε, δ)' if self.guarantee.delta else 'ε'}-differential privacy"

    @property
    def sources(self) -> tuple[str, ...]:
        """References for the guarantee."""
        promise = self.guarantee
        local = (_LOCAL,) * (promise.model == "local")
        gaussian = (_GAUSSIAN, _COMPOSED) * bool(promise.delta)
        exact = (_EXACT,) * (promise.model != "local")
        return (_DEFINITION, *local, *gaussian, *exact)

    def paragraph(self) -> str:
        """A paragraph for a paper, with its references.

        Examples:
            >>> facts = Deployment(
            ...     product="the mean of curves", mechanism="adaptive", records=500,
            ...     guarantee=Guarantee(epsilon=1.0), domain={"value_range": (0, 6)},
            ... )
            >>> print(facts.paragraph().partition(".")[0])
            We released the mean of curves (500 records) under ε-differential privacy with ε = 1
        """
        return f"{self.method()}\n\nSources: {'; '.join(self.sources)}."

    def method(self) -> str:
        """The paragraph without its sources."""
        promise = self.guarantee
        count = f" ({self.records} records)" if self.records is not None else ""
        small = f" and δ = {promise.delta:g}" if promise.delta else ""
        more = ", and by δ" if promise.delta else ""
        sentences = [
            f"We released {self.product}{count} under {self.flavor} with ε = {promise.epsilon:g}"
            f"{small}.",
            f"Replacing all data of one {promise.unit} changes the probability of any result by a "
            f"factor of e^ε at most{more}; {_TRUST[promise.model]}.",
        ]
        if self.domain:
            stated = "; ".join(f"{_words(name)} {_shown(v)}" for name, v in self.domain.items())
            sentences.append(f"Public beforehand: {stated}.")
        if promise.assumptions:
            sentences.append(f"The promise assumes that {'; that '.join(promise.assumptions)}.")
        sentences.append(_NOISE[promise.sampler])
        if self.computed:
            sentences.append(self.computed)
        sentences.append(f"Software: dpfda {__version__}, mechanism {self.mechanism}.")
        return " ".join(sentences)

    def record(
        self,
        *,
        curator: str,
        data: str,
        date: str,
        purpose: str | None = None,
        contact: str | None = None,
        ledger: BaseLedger | None = None,
    ) -> dict[str, Any]:
        """An entry for a public registry of deployments, of plain values.

        It has the fields that registries require (registry.opendp.org, all three tiers).

        Args:
            curator: who holds the data and is responsible for the release.
            data: whose data they are and what they contain.
            date: day of publication, as 2026-01-31.
            purpose: what the release is for.
            contact: address for questions of readers.
            ledger: ledger of the data set, which lists its other releases.
        """
        check_words(curator=curator, data=data, date=date)
        about = {
            "curator": curator,
            "data": data,
            "data_product": self.product,
            "intended_use": purpose,
            "publication_date": date,
            "contact": contact,
        }
        return self._entry(about, ledger)

    def draft(self, *, ledger: BaseLedger | None = None) -> dict[str, Any]:
        """The same entry without the facts that only the data holder knows."""
        return self._entry({"data_product": self.product}, ledger)

    def _entry(self, about: dict[str, Any], ledger: BaseLedger | None) -> dict[str, dict[str, Any]]:
        promise = self.guarantee
        loss = {
            "flavor": self.flavor,
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            "privacy_unit": promise.unit,
            "neighbors": f"{promise.relation} {promise.unit}'s data",
            "model": promise.model,
            "trust": _TRUST[promise.model],
            "records": self.records,
            "data_domain": {name: plain(value) for name, value in self.domain.items()},
            "unprotected_quantities": list(promise.assumptions),
        }
        spent = None if ledger is None else [str(entry.label) for entry in ledger.entries]
        made = {
            "mechanism": self.mechanism,
            "composition": "the budgets of all questions add up to the parameters above",
            "post_processing": self.computed or None,
            "other_releases": spent,
            "software": f"dpfda {__version__}",
            "noise": _NOISE[promise.sampler],
            "method": self.paragraph(),
            "sources": list(self.sources),
        }
        kept: dict[str, dict[str, Any]] = {
            "deployment": about,
            "privacy": loss,
            "implementation": made,
        }
        return {
            part: {name: value for name, value in facts.items() if value is not None}
            for part, facts in kept.items()
        }


def check_words(*, curator: object, data: object, date: object, mark: str = "") -> None:
    """Refuse invalid text in a record; `mark` precedes the names of invalid entries."""
    for name, text in (("curator", curator), ("data", data)):
        if not isinstance(text, str) or not text.strip():
            raise InvalidParameter(mark + name, "a few words", text)
    try:
        day = date if isinstance(date, str) else ""
        normalized = datetime.date.fromisoformat(day).isoformat()
    except ValueError:
        normalized = None
    if normalized is None or normalized != date:
        raise InvalidParameter(f"{mark}date", "a day like 2026-01-31", date)


def to_yaml(record: Mapping[str, Any]) -> str:
    """A record as YAML, one fact per line.

    Examples:
        >>> print(to_yaml({"privacy": {"epsilon": 0.5, "neighbors": "replace one"}}), end="")
        privacy:
          epsilon: 0.5
          neighbors: "replace one"
    """
    lines = []
    for part, facts in record.items():
        lines.append(f"{part}:")
        for name, value in facts.items():
            if isinstance(value, list) and value:
                lines.append(f"  {name}:")
                lines += [f"    - {_flow(one)}" for one in value]
            else:
                lines.append(f"  {name}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _flow(value: object) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        parts = (f"{_flow(str(key))}: {_flow(one)}" for key, one in value.items())
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    text = _UNSEEN.sub(_escaped, json.dumps(value, ensure_ascii=False))
    # Old YAML parsers read 1e-05 as a string and 1.0e-05 as a number.
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text


# Characters that YAML parsers refuse or treat as the end of a line.
_UNSEEN = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def _escaped(letter: re.Match[str]) -> str:
    return f"\\u{ord(letter[0]):04x}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _shown(value: object) -> str:
    """A value as text, with short numbers."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(_shown(one) for one in value) + ")"
    return str(value)
