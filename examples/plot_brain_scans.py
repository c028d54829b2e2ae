"""
# Brain scans: ε or (ε, δ)?

Fractional anisotropy along a tract lies in [0, 1] by definition, so the public range is known.
The example releases the same mean under pure ε and under (ε, δ), twenty times each.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateMean

rng = np.random.default_rng(4)
s = np.linspace(0, 1, 93)
profile = 0.5 + 0.12 * np.cos(4 * np.pi * s) - 0.1 * s
scans = (profile + rng.normal(0, 0.05, (380, 1)) + 0.03 * rng.normal(size=(380, 1)) * s).clip(0, 1)
truth = scans.mean(axis=0)


# %%
def releases(delta):
    """Twenty means of the same scans, as rehearsals."""
    return [
        PrivateMean(1.0, delta=delta, value_range=(0, 1), random_state=seed)
        .fit(scans, grid_points=s)
        .release_.values(s)
        for seed in range(20)
    ]


fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, delta in zip(axes, (0.0, 1e-6), strict=True):
    curves = np.array(releases(delta))
    size = np.sqrt(np.mean((curves - truth) ** 2))
    ax.plot(s, curves.T, color="tab:blue", lw=0.6, alpha=0.5)
    ax.plot(s, truth, "k", lw=1.5)
    ax.set(xlabel="along the tract", title=f"ε = 1, δ = {delta:g}: off by {size:.4f}")
axes[0].set_ylabel("fractional anisotropy")
plt.show()
