"""
# A budget over a year

A curator makes a small release every week. Without δ the values of ε add up. With a small δ, the
values of μ² of Gaussian noise add up, and the total ε of the year is much smaller.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda.privacy.calibration import gaussian_epsilon

weeks = np.arange(1, 53)
weekly = 20.0  # standard deviations of the noise, in units of what one person can move
one = gaussian_epsilon(delta=1e-6, multiplier=weekly)
together = [gaussian_epsilon(delta=1e-6, multiplier=weekly / np.sqrt(n)) for n in weeks]
print(f"one week ε = {one:.2f}, a year {together[-1]:.2f}, by sums {52 * one:.2f}")

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.plot(weeks, weeks * one, label="sums of ε")
ax.plot(weeks, together, label="squares of μ, what a ledger with δ = 1e-6 keeps")
ax.set(xlabel="weeks", ylabel="ε spent on each person", ylim=0)
ax.legend()
plt.show()
