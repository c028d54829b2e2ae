"""
# A slope with its band

A curator fits a regression of a number on curves. The picture shows the slope function and its band
over t, in its original units.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateCurveRegression

rng = np.random.default_rng(11)
t = np.linspace(0, 1, 50)
X = (
    rng.normal(size=(20_000, 3))
    * [1.0, 0.7, 0.5]
    @ np.stack([np.ones(50), np.cos(np.pi * t), np.cos(2 * np.pi * t)])
)
slope = 1 + np.cos(np.pi * t)
y = np.trapezoid(X * slope, t, axis=1) + rng.normal(0, 0.3, 20_000)

# %%
fit = PrivateCurveRegression(
    2.0, value_range=(-4, 4), target_range=(-5, 5), delta=1e-6, random_state=0
).fit(X, y, grid_points=t)
print(fit.guarantee_)
band = fit.slope(points=t)

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.fill_between(t, band.low, band.high, alpha=0.3, label="95 % band, everywhere at once")
ax.plot(t, band.middle, label="private slope")
ax.plot(t, slope, "k:", label="made-up truth")
ax.set(xlabel="t", ylabel="slope")
ax.legend()
plt.show()
