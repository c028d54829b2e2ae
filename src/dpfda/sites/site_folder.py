"""The folder of a site: its identity, its data source, the keys that it trusts, its ledger.

A plan can ask only for columns that the site offers.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from dpfda.curves.files import Reading, Table
from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.noise import SecureSource, Source
from dpfda.privacy import durable
from dpfda.privacy.ledger_file import FileLedger
from dpfda.protocol.secure_sum import Identity
from dpfda.sites.guard import Approve, Guard
from dpfda.sites.identity import Card, new_node_key, node_public
from dpfda.sites.plan import Plan
from dpfda.sites.shared import Holds
from dpfda.sites.stored_files import Journal, kept, kept_identity, secret

EVERY_OTHER = "*"
"""Stands for all columns without their own range."""


def differences(asked: Mapping[str, Any], offered: Mapping[str, Any]) -> str:
    """The reason why a site does not offer the columns of a plan; empty if it does.

    Examples:
        >>> differences({"age": [18, 99]}, {"age": [18, 99], "sex": ["f", "m"]})
        ''
        >>> differences({"hiv": [0, 1]}, {"age": [18, 99]})
        "it asks for the column 'hiv', which this site does not offer"
    """
    for name, known in asked.items():
        own = offered.get(name, offered.get(EVERY_OTHER))
        if own is None:
            return f"it asks for the column {name!r}, which this site does not offer"
        if list(known) != list(own):
            return (
                f"it takes {list(known)} for the public range of {name!r}, "
                f"and this site {list(own)}"
            )
    return ""


class SiteConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The contents of `site.toml`: written by ``dpfda site init``, and edited by people.

    Attributes:
        name: name of the site.
        data: path of the table, which is read here and never sent.
        unit: unit of protection: what one row, or all rows of an owner, belong to.
        owner: the column with the owner of each row, if owners have several rows.
        people: number of people who evaluate models, if `data` is an exported study.
        epsilon: limit of the total ε of all studies.
        delta: limit of the total δ of all studies.
        ask: whether a person is asked before each question is answered.
        colluders: plans that protect against fewer colluding sites are refused.
        least_rows: a table with fewer records is refused, because the card publishes their number.
        least_together: plans whose sites have fewer records in total are refused.
        questions: estimators that plans may use, such as PrivateMean; empty permits all.
        ranges: the columns that plans may use, with their public ranges or categories.
        trust: names and keys of the parties whose keys were checked.
        agreed: hashes of the plans that this site signed.
    """

    name: str
    data: str
    unit: str = "person"
    owner: str = ""
    people: int = 0
    epsilon: float
    delta: float
    ask: Literal["never", "every question"] = "never"
    colluders: int = 1
    least_rows: int = 0
    least_together: int = 0
    questions: list[str] = []
    ranges: dict[str, list[float | str]]
    trust: dict[str, str] = {}
    agreed: list[str] = []

    @property
    def holds(self) -> Holds:
        """The kinds of data that plans may use."""
        if self.people:
            return "a study"
        return "owners" if self.owner else "rows"


class SiteFolder:
    """A site's folder. Restoring an old copy of it voids the guarantee.

    Args:
        path: path of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def begin(cls, path: Path, config: SiteConfig) -> SiteFolder:
        """Create a folder with keys, card, ledger and config; refused if the data do not fit."""
        folder = cls(path)
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.name == "posix" and path.stat().st_mode & 0o022:
            raise InvalidParameter("FOLDER", "a folder that only you can write to", str(path))
        if folder._config_path.exists():
            raise InvalidParameter("FOLDER", "one without a site", str(path))
        rows = folder._counted(config)
        if rows < config.least_rows:
            rule = f"data with at least {config.least_rows} records (--least-rows)"
            raise InvalidData("--data", rule, "fewer")
        FileLedger(folder.ledger_path, limit_epsilon=config.epsilon, limit_delta=config.delta)
        node = node_public(kept(path / "node.key", new_node_key()))
        card = Card.signed_by(folder.identity, name=config.name, node=node, rows=rows)
        durable.keep(folder.card_path, msgspec.json.format(msgspec.json.encode(card), indent=2))
        folder._write(config)
        return folder

    @property
    def config(self) -> SiteConfig:
        """The current contents of the config file."""
        if not self._config_path.exists():
            raise InvalidParameter("FOLDER", "one that `dpfda site init` made", str(self.path))
        try:
            return _read(self._config_path.read_text(encoding="utf-8"))
        except UnicodeError as error:
            raise InvalidData("site.toml", "a site's configuration", str(error)) from None

    @property
    def identity(self) -> Identity:
        """The site's long-term key."""
        return kept_identity(self.path / "identity.key")

    @property
    def node_key_path(self) -> Path:
        """File of its private key on the Flower network."""
        path = self.path / "node.key"
        secret(path)  # refuses a key that others may read
        return path

    @property
    def card_path(self) -> Path:
        """The file of the card, which other parties pin."""
        return self.path / "card.json"

    @property
    def card(self) -> Card:
        """The card of this site."""
        return msgspec.json.decode(self.card_path.read_bytes(), type=Card)

    @property
    def ledger_path(self) -> Path:
        """The file of the ledger of all studies."""
        return self.path / "ledger.jsonl"

    @property
    def ledger(self) -> FileLedger:
        """The ledger with the remaining budget."""
        return FileLedger(self.ledger_path)

    @property
    def journal(self) -> Journal:
        """The journal of queries and replies."""
        return Journal(self.path / "journal.txt")

    @property
    def plans(self) -> dict[str, Plan]:
        """The plans that this site signed, by their hashes."""
        found = [Plan.load(path) for path in sorted((self.path / "plans").glob("*.json"))]
        return {plan.digest: plan for plan in found}

    def pin(self, cards: Iterable[Card]) -> None:
        """Trust these keys; refuse a new key for a known name."""
        self._write(self._trusting(cards))

    def _trusting(self, cards: Iterable[Card]) -> SiteConfig:
        """The config with these keys, without writing it."""
        config = self.config
        for card in cards:
            card.check()
            known = config.trust.setdefault(card.name, card.key)
            if known != card.key:
                raise ProtocolError(
                    f"the card of {card.name!r} holds another key than the one pinned here"
                )
        return config

    def refuse(self, plan: Plan, reason: str) -> None:
        """Record in the journal that a plan was not signed, and why."""
        name = plan.body.coordinator.name
        self.journal.write("refused", f"plan {plan.digest} of {name}: {reason}")

    def examine(self, plan: Plan, *, trusting: Iterable[Card] = ()) -> None:
        """Refuse a plan that this site cannot agree to, and name the violated rule.

        Args:
            plan: the plan from the coordinator.
            trusting: cards that would be pinned with the signature.
        """
        config, mine = self._trusting(trusting), self.card
        others = [card for card in plan.body.sites if card.name != config.name]
        for card in (plan.body.coordinator, *others):
            if card.name not in config.trust:
                raise ProtocolError(
                    f"no key of {card.name!r} is pinned here: get its card, compare its "
                    f"fingerprint ({card.fingerprint} in the plan), and name it with --trust"
                )
            if config.trust[card.name] != card.key:
                raise ProtocolError(
                    f"the plan lists another key of {card.name!r} than the one pinned here"
                )
        if plan.card(config.name) != mine:
            raise ProtocolError("the plan lists another card of this site than its own")
        if plan.inquiry.masked and plan.terms.colluders < config.colluders:
            raise ProtocolError(
                f"the plan protects against {plan.terms.colluders} colluding sites, but this site "
                f"requires {config.colluders} (colluders in site.toml)"
            )
        if config.questions and plan.inquiry.facts.title not in config.questions:
            raise ProtocolError(
                f"the plan asks for {plan.inquiry.facts.title}, which is not among the questions "
                "of site.toml"
            )
        if sum(card.rows for card in plan.body.sites) < config.least_together:
            raise ProtocolError(
                f"the sites of the plan hold fewer than {config.least_together} records together "
                "(least_together in site.toml)"
            )
        if reason := differences(plan.inquiry.columns, config.ranges):
            raise ProtocolError(f"the plan does not fit this site: {reason}")
        if (asked := plan.inquiry.holds) != config.holds:
            raise ProtocolError(
                f"the plan is for sites with {asked}, but this one has {config.holds}"
            )
        if (unit := plan.inquiry.facts.unit) != config.unit:
            raise ProtocolError(f"the plan protects each {unit}, but this site each {config.unit}")
        new = plan.digest not in config.agreed
        if new and (reason := self.ledger.refusal(plan.most)):
            raise ProtocolError(f"this site cannot pay for the plan: {reason}")

    def agree(self, plan: Plan) -> None:
        """Sign a plan after `examine` accepted it."""
        self.examine(plan)
        config, folder = self.config, self.path / "plans"
        folder.mkdir(exist_ok=True, mode=0o700)
        durable.keep(folder / f"{plan.digest}.json", plan.to_json())
        signature = self.identity.sign(plan.agreement)
        durable.keep(folder / f"{plan.digest}.signature", signature)
        if plan.digest not in config.agreed:
            config.agreed.append(plan.digest)
        self._write(config)
        self.journal.write("signed", f"plan {plan.digest} of {plan.body.coordinator.name}")

    def guard(
        self, plan: Plan, *, approve: Approve | None = None, source: Source | None = None
    ) -> Guard:
        """The guard of a plan that this site signed; reads the data."""
        config = self.config
        if plan.digest not in config.agreed:
            raise ProtocolError(f"this site did not sign the plan {plan.digest}")
        self.examine(plan)
        part = plan.inquiry.part(plan, self, SecureSource() if source is None else source)
        return Guard(plan, part, identity=self.identity, journal=self.journal, approve=approve)

    def progress(self, plan: Plan) -> list[str]:
        """The progress of each query of a plan at this site, in words."""
        return plan.inquiry.progress(self.account(plan), plan.digest)

    def account(self, plan: Plan) -> Path:
        """The folder of the account of a plan."""
        return self.path / "accounts" / plan.digest

    def table(self) -> Table:
        """The private rows."""
        return self._table(self.config)

    @property
    def data(self) -> Path:
        """The path of the data."""
        return self.path / self.config.data

    def _table(self, config: SiteConfig) -> Table:
        return Reading().open(self.path / config.data).table(least=1)

    def _counted(self, config: SiteConfig) -> int:
        """Number of records; the file must exist."""
        if config.people:
            if not (self.path / config.data / "model.json").is_file():
                raise InvalidData("--study", "an exported study", config.data)
            return config.people
        table = self._table(config)
        for name in config.ranges:
            if name not in (*table.names, EVERY_OTHER):
                raise InvalidData("--feature-ranges", f"about columns of {config.data}", repr(name))
        if config.owner and config.owner not in table.names:
            raise InvalidData("--owner", f"a column of {config.data}", repr(config.owner))
        return len(set(table.text(config.owner))) if config.owner else len(table)

    @property
    def _config_path(self) -> Path:
        return self.path / "site.toml"

    def _write(self, config: SiteConfig) -> None:
        written = as_toml(msgspec.to_builtins(config))
        _ = _read(written)  # check first: an unreadable config would make the site unusable
        durable.keep(self._config_path, written.encode())


def _read(written: str) -> SiteConfig:
    try:
        return msgspec.convert(tomllib.loads(written), SiteConfig)
    except (tomllib.TOMLDecodeError, msgspec.MsgspecError) as error:
        raise InvalidData("site.toml", "a site's configuration", str(error)) from None


def as_toml(values: dict[str, Any]) -> str:
    """TOML text of a config: strings, numbers, lists and one level of tables.

    Examples:
        >>> print(as_toml({"name": "north", "ranges": {"age": [18, 99]}}))
        name = "north"
        <BLANKLINE>
        [ranges]
        "age" = [18, 99]
        <BLANKLINE>
    """
    plain = [f"{key} = {_toml(one)}" for key, one in values.items() if not isinstance(one, dict)]
    tables = [
        f"\n[{key}]\n" + "".join(f"{_toml(name)} = {_toml(one)}\n" for name, one in table.items())
        for key, table in values.items()
        if isinstance(table, dict)
    ]
    return "\n".join(plain) + "\n" + "".join(tables)


def _toml(value: object) -> str:
    """A string in TOML: JSON, except for lone surrogates and DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
