"""
# Synthetic curves

Any number of curves can be drawn from one release of means and covariances. They disclose no more
than the release.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateMoments

rng = np.random.default_rng(10)
t = np.linspace(0, 24, 49)
shapes = np.stack([np.ones(49), np.cos(t / 24 * 2 * np.pi)])
night = rng.random(4000) < 0.4
load = 0.9 + rng.normal(size=(4000, 2)) * [0.25, 0.12] @ shapes
load[night] += 0.4 * np.exp(-((t - 3) ** 2) / 6)
tariff = np.where(night, "night", "day")

# %%
moments = PrivateMoments(
    1.0, value_range=(0, 3), groups=("day", "night"), emphasis="covariances", random_state=0
).fit(load, tariff, grid_points=t)
drawn = moments.sample(2000, seed=1)
print(drawn.to_frame().shape, "values that no home has")

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, curves, groups, title in (
    (axes[0], load, tariff, "homes (private)"),
    (axes[1], drawn.curves, drawn.groups, "made up from the release"),
):
    for name, color in (("day", "tab:blue"), ("night", "tab:orange")):
        some = curves[groups == name]
        ax.plot(t, some[:20].T, color=color, lw=0.5, alpha=0.6)
        ax.plot(t, some.mean(axis=0), color=color, lw=2.5, label=name)
    ax.set(xlabel="hour", title=title)
axes[0].set_ylabel("load, kW")
axes[0].legend()
plt.show()
