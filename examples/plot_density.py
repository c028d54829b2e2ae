"""
# A density of ages

A curator releases the density of the age at death. At a smaller ε the density is smoother, because
waves with much noise are shrunk.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateDensity

rng = np.random.default_rng(8)
ages = np.concatenate([rng.normal(82, 8, 2600), rng.normal(60, 14, 380), rng.exponential(2, 20)])
ages = ages.clip(0, 110)

# %%
years = np.linspace(0, 110, 221)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, epsilon in zip(axes, (0.1, 1.0), strict=True):
    density = PrivateDensity(epsilon, feature_ranges=(0, 110), random_state=0).fit(ages)
    ax.hist(ages, bins=55, density=True, color="0.85", label="the data (private)")
    ax.plot(years, density.release_.values(years), label=f"released, ε = {epsilon:g}")
    ax.set(xlabel="age at death")
    ax.legend()
axes[0].set_ylabel("density")
print(density.guarantee_)
plt.show()
