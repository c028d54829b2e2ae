"""003 Figure 5: private mean curves of brain scans and of electricity demand."""

from __future__ import annotations

from typing import Any

from dpfda.central.adaptive import Adaptive
from dpfda.central.bernstein import Bernstein
from dpfda.central.kernels import Matern
from dpfda.central.linear import AbsoluteRegularization, FiniteLaplace, QuadraticRegularization
from dpfda.central.mean import FunctionMechanism
from dpfda.central.quadrature import trapezoid
from dpfda.noise import SimulationSource
from dpfda.study.outcome import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions import _p003 as common

TITLE = "Private means of brain scans and electricity demand, ε = 1 (003 Figure 5)"
_PUBLIC = {"scans": 1.0, "electricity": 2.0}


def run(effort: Effort = FULL) -> Outcome:
    """One release of each mechanism, with public bounds, from either data set."""
    sets = {"scans": common.scans(), "electricity": common.mondays()}
    rows: list[dict[str, Any]] = []
    pictures: dict[tuple[str, float], dict[str, Any]] = {}
    for name, (records, grid) in effort.over(sets.items()):
        shift = _PUBLIC[name] / 2
        mean, weights = records.mean(axis=0), trapezoid(grid)
        for nu in (1.5, 2.5):
            kernel = Matern(nu=nu)
            mechanisms: dict[str, FunctionMechanism] = {
                "FRL": FiniteLaplace(kernel=kernel),
                "ICLP-AR": AbsoluteRegularization(kernel=kernel),
                "ICLP-QR": QuadraticRegularization(kernel=kernel),
                "Bernstein": Bernstein(order=20),
                "adaptive": Adaptive(),
            }
            curves = {}
            for label, mechanism in mechanisms.items():
                shifted = records - shift
                release = common.release_of(mechanism, shifted, grid, bound=shift, epsilon=1.0)
                asked = release.ask(release.records(shifted), source=SimulationSource(1))
                curves[label] = asked.values() + shift
            pictures[name, nu] = curves | {"sample mean": mean}
            errors = {k: float((curve - mean) ** 2 @ weights) for k, curve in curves.items()}
            rows.append({"data": name, "ν": nu} | errors)

    def plot() -> Any:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(2, 2, figsize=(11, 7), layout="constrained")
        for place, ((name, nu), curves) in zip(axes.flat, pictures.items(), strict=True):
            t = sets[name][1][0]
            for label, curve in curves.items():
                bold = label == "sample mean"
                place.plot(t, curve, "k" if bold else "-", linewidth=2 if bold else 1, label=label)
            place.set_title(f"{name}, ν = {nu}", fontsize="small")
        axes.flat[0].legend(fontsize="x-small")
        return figure

    notes = [
        "Squared distances of one release each from the sample mean; a public mid-range is "
        "subtracted first. Single curves are private and not drawn.",
    ]
    return Outcome(
        rows=rows, figures={"adaptive_scans": rows[0]["adaptive"]}, notes=notes, plot=plot
    )
