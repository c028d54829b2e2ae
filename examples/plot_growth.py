"""
# Growth: a band for all children

A noise band covers the mean of the children *in the data*. A band for the population also includes
the sampling error. Both are computed from one release.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateMean

rng = np.random.default_rng(3)
age = np.linspace(2, 18, 33)
typical = 86 + 6.2 * (age - 2) + 8 / (1 + np.exp(-(age - 12.5) * 1.2))
children = typical + rng.normal(0, 4, (800, 1)) + rng.normal(0, 0.35, (800, 1)) * (age - 2)

# %%
mean = PrivateMean(1.0, delta=1e-6, value_range=(60, 220), inference=True, random_state=0).fit(
    children, grid_points=age
)
population = mean.release_.interval(0.95, of="population", simultaneous=True)
sample = mean.release_.interval(0.95, of="sample", simultaneous=True)
print(mean.guarantee_)
held = np.mean((population[0] <= typical) & (typical <= population[1]))
print(f"the population's band holds the made-up truth at {100 * held:.0f} % of ages")

# %%
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
bands = ((population, "0.8", "population"), (sample, "tab:blue", "these children"))
for (low, high), color, name in bands:
    ax.fill_between(age, low - typical, high - typical, color=color, alpha=0.6, label=name)
ax.axhline(0, color="k", lw=0.8)
ax.set(xlabel="age", ylabel="height less the true mean, cm", title="95 % bands, all ages at once")
ax.legend()
plt.show()
