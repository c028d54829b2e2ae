"""Hospitals of a shared study, in one process: real folders, real guards, no network."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from dpfda.noise import SimulationSource
from dpfda.sites.coordinator import Coordinator
from dpfda.sites.identity import Card
from dpfda.sites.plan import Plan, PlanBody
from dpfda.sites.site_folder import SiteConfig, SiteFolder
from dpfda.sites.study_folder import StudyFolder

ROWS = 200
RANGES = {"age": [18.0, 100.0], "weight": [30.0, 150.0], "dose": [0.0, 100.0]}


def write_table(path, seed, rows=ROWS):
    rng = np.random.default_rng(seed)
    age, weight = rng.uniform(20, 90, rows), rng.uniform(45, 120, rows)
    dose = 45 - 0.25 * age + 0.2 * weight + rng.normal(0, 4, rows)
    numbers = np.column_stack([age, weight, dose])
    lines = ["age,weight,dose", *(",".join(f"{x:.3f}" for x in row) for row in numbers)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_curves(path, seed, rows=ROWS):
    """Curves t0 ... t9, whose group moves them."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=rows)
    grid = np.linspace(0, 1, 10)
    curves = np.sin(3 * grid) + rng.normal(0, 0.3, (rows, 1)) + np.outer(group, grid)
    names = [*(f"t{k}" for k in range(10)), "group", "dose"]
    lines = [
        ",".join([*(f"{x:.4f}" for x in curve), ["no", "yes"][of], f"{curve[5]:.4f}"])
        for curve, of in zip(curves, group, strict=True)
    ]
    path.write_text("\n".join([",".join(names), *lines]) + "\n", encoding="utf-8")


def write_owners(path, seed, *, owners, each=4):
    """Visits of clients c000, c001, ..., who are sick where age and weight say so."""
    rng, rows = np.random.default_rng(seed), owners * each
    age, weight = rng.uniform(20, 90, rows), rng.uniform(45, 120, rows)
    sick = np.where(age + weight + rng.normal(0, 5, rows) > 140, "yes", "no")
    lines = [f"c{k % owners:03d},{age[k]:.3f},{weight[k]:.3f},{sick[k]}" for k in range(rows)]
    path.write_text("\n".join(["client,age,weight,sick", *lines]) + "\n", encoding="utf-8")


def typed(title):
    """(who, command) of a section of the page about hospitals."""
    guides = Path(__file__).resolve().parents[2] / "docs" / "guides"
    page = (guides / "hospitals.md").read_text("utf-8")
    section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r'^```console title="(\w+)"\n\$ (.*)\n```$', section, re.MULTILINE)


def site_folder(place, name, seed, *, rows=ROWS, write=write_table, **changes):
    place.mkdir(parents=True, exist_ok=True)
    write(place / "table.csv", seed, rows)
    if "colluders_" in changes:
        changes["colluders"] = changes.pop("colluders_")
    given = {
        "name": name, "data": "table.csv", "epsilon": 2.0, "delta": 1e-5, "ranges": RANGES,
    }  # fmt: skip
    return SiteFolder.begin(place, SiteConfig(**(given | changes)))


def inquiry(rows, *, targets=("dose",), estimator="PrivateLinearRegression", **changes):
    given = {
        "epsilon": 1.0, "delta": 1e-6, "target_range": [0, 100],
        "feature_ranges": {"age": [18, 100], "weight": [30, 150]},
    }  # fmt: skip
    parameters = {name: one for name, one in (given | changes).items() if one is not None}
    columns = list(parameters.get("feature_ranges", ["age", "weight"]))
    asked = {
        "estimator": estimator, "parameters": parameters, "rows": rows, "columns": columns,
        "grid_points": None,
    }  # fmt: skip
    return {"name": "table", "inquiry": asked, "targets": list(targets)}


class Hospitals:
    """Sites, a plan that all of them signed, and a coordinator whose carrier is this object.

    `silent` holds (step, site) pairs: the message is not delivered; `deaf`: the reply is lost.
    """

    def __init__(
        self,
        place,
        *,
        sites=5,
        colluders=1,
        dropouts=1,
        rows=ROWS,
        asked=None,
        simulated=True,
        **site,
    ):
        self.place, self.simulated = place, simulated
        names = [f"h{k}" for k in range(sites)]
        self.folders = {
            name: site_folder(place / name, name, k, rows=rows, **site)
            for k, name in enumerate(names)
        }
        self.folder = StudyFolder(place / "study")
        identity = self.folder.identity
        self.coordinator_card = Card.signed_by(identity, name="registry")
        cards = [folder.card for folder in self.folders.values()]
        body = PlanBody(
            study="doses", coordinator=self.coordinator_card, sites=tuple(cards),
            colluders=colluders, dropouts=dropouts,
            inquiry=asked or inquiry(sites * rows),
            address="127.0.0.1:1", certificate="",
        )  # fmt: skip
        self.plan = Plan.signed_by(identity, body)
        self.folder.begin(self.plan)
        self.silent, self.deaf, self.calls = set(), set(), []
        self.guards = {}
        for name, folder in self.folders.items():
            folder.pin([self.coordinator_card, *(card for card in cards if card.name != name)])
            folder.agree(self.plan)
            self.restart(name)

    def restart(self, name):
        """As after kill -9: nothing but the folder remains."""
        number = list(self.folders).index(name)
        source = SimulationSource(7).spawn(len(self.folders))[number] if self.simulated else None
        self.guards[name] = self.folders[name].guard(self.plan, source=source)

    def carry(self, messages):
        replies = {}
        for name, content in messages.items():
            step = self.step_of(content)
            self.calls.append((step, name))
            if (step, name) in self.silent:
                continue
            reply = self.guards[name].handle(content)
            if (step, name) not in self.deaf:
                replies[name] = reply
        return replies

    def signed(self, name, asked, reply):
        """What a site that lies would send."""
        from dpfda.sites.messages import Reply, encode

        body = encode(reply)
        signature = self.folders[name].identity.sign(self.plan.replied(asked, body))
        return encode(Reply(body=body, signature=signature))

    @staticmethod
    def step_of(content):
        from dpfda.sites.messages import Envelope, decode

        return decode(content, Envelope).step

    def coordinator(self, carrier=None):
        return Coordinator(
            self.plan, identity=self.folder.identity, folder=self.folder,
            carrier=carrier or self.carry,
        )  # fmt: skip

    def spent(self, name):
        from dpfda.privacy.ledger_file import FileLedger

        return FileLedger(self.folders[name].ledger_path).entries
