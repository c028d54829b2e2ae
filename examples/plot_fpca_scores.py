"""
# Components of days

The components are released. Scores of new curves are computed without noise, so they are not
protected. This example shows scores of simulated curves.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateFPCA

rng = np.random.default_rng(9)
t = np.linspace(0, 24, 49)
shapes = np.stack([np.ones(49), np.cos(t / 24 * 2 * np.pi), np.sin(t / 24 * 4 * np.pi)])
late = rng.random(3000) < 0.5
weights = rng.normal(size=(3000, 3)) * [0.3, 0.1, 0.05] + np.outer(late, [0, 0.3, 0])
days = 1.2 + weights @ shapes

# %%
fpca = PrivateFPCA(1.0, value_range=(0, 3), n_components=2, random_state=0)
fpca.fit(days, grid_points=t)
print(fpca.in_words())
scores = fpca.transform(days[:400], grid_points=t)

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
fpca.plot(axes[0])
axes[0].set(xlabel="hour", title="released components")
for kind, color, name in ((False, "tab:blue", "early"), (True, "tab:orange", "late")):
    chosen = late[:400] == kind
    axes[1].scatter(*scores[chosen].T, s=6, color=color, label=name)
axes[1].set(
    xlabel="first score", ylabel="second score", title="scores (private: for these eyes only)"
)
axes[1].legend()
plt.show()
