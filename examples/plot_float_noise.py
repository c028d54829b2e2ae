"""
# Attacking float noise

With Laplace noise in floating point, the low-order bits of the sum depend on the secret. With exact
noise on a lattice, every report is a multiple of the step, so this attack fails.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import Mechanism, SimulationSource
from dpfda.checks.twins import all_twins

floats = all_twins()["float_laplace"]()
exact = Mechanism.named("laplace")(epsilon=1.0)


def low_bits(reports):
    """How many trailing zero bits the fraction of each report has."""
    bits = np.abs(reports).ravel().view(np.int64) & ((1 << 52) - 1)
    lowest = bits & -bits
    return np.where(bits == 0, 52, np.log2(np.maximum(lowest, 1))).astype(int)


# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
for ax, mechanism, title in ((axes[0], floats, "float noise"), (axes[1], exact, "exact noise")):
    for secret, width in ((0.0, 0.8), (1.0, 0.4)):
        values = np.full((200_000, 1), secret)
        found = low_bits(mechanism.randomize(values, SimulationSource(1)))
        share = np.bincount(found, minlength=53)[:53] / found.size
        ax.bar(range(53), share, width=width, label=f"secret {secret:g}")
    ax.set(xlabel="trailing zero bits of a report", title=title, yscale="log")
axes[0].set_ylabel("share of reports")
axes[0].legend()
plt.show()
