"""How ``dpfda release fpca`` shows components."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from dpfda.central.fpca import PrivateFPCA
from dpfda.cli._release_view import print_public

_ROWS = 10  # points shown of a curve


def print_components(model: PrivateFPCA) -> None:
    """Mean and components at some points, what they explain, the promise."""
    console = Console(markup=False)
    table = Table(title="mean and components (ten points of the domain)", title_justify="left")
    names = ["t", "mean", *model.get_feature_names_out()]
    for name in names:
        table.add_column(str(name), justify="right")
    t = model.release_.basis.grid[0]
    places = np.unique(np.linspace(0, len(t) - 1, _ROWS).round().astype(np.int64))
    for place in places:
        numbers = [t[place], model.mean_[place], *model.components_[:, place]]
        table.add_row(*(f"{number:.4g}" for number in numbers))
    console.print(table)
    console.print(model.in_words(), markup=False)
    print_public(console, model.release_)
