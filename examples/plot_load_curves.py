"""
# Load curves: when do homes differ?

A grid operator holds the load of 5000 homes over a day. It publishes the difference of two groups
with a simultaneous band for the whole day. The group of a home (with or without a heat pump) is
private, too.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateGroupComparison

rng = np.random.default_rng(2)
hour = np.linspace(0, 24, 49)
homes = 5000
pump = rng.random(homes) < 0.3
level = rng.normal(0.7, 0.2, (homes, 1)).clip(0.2)
load = level * (1 + 0.6 * np.exp(-((hour - 19) ** 2) / 6) + 0.3 * np.exp(-((hour - 7) ** 2) / 3))
load[pump] += 0.25 * np.exp(-((hour - 4) ** 2) / 12)
group = np.where(pump, "pump", "none")

# %%
# The public range: homes in this artificial town never draw more than 4 kW.
comparison = PrivateGroupComparison(
    epsilon=1.0, value_range=(0, 4), groups=("none", "pump"), random_state=0
).fit(load, group, grid_points=hour)
print(comparison.in_words())
band = comparison.difference("pump", "none")
print(f"half width of the band: ±{np.max(band.high - band.low) / 2:.2f} kW at 95 %")

# %%
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
comparison.plot(ax)
ax.plot(hour, 0.25 * np.exp(-((hour - 4) ** 2) / 12), "k:", label="made-up truth")
ax.set(xlabel="hour", ylabel="difference, kW")
ax.legend()
plt.show()
