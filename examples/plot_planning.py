"""
# Planning: is a study worthwhile?

The study is simulated with artificial people before anybody is asked. The picture shows the error
as a function of ε, with the range of nine out of ten studies.
"""

import matplotlib.pyplot as plt

from dpfda import forecast
from dpfda.planning.words import verdict

facts = {"value_range": (-6, 6), "classes": ("no", "yes"), "non_private_error": 0.1}
epsilons = [0.25, 1, 4]
found = [forecast(1000, epsilon, studies=6, also=(), **facts) for epsilon in epsilons]
print(verdict(found[0]))

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
middle = [100 * one.expected.error for one in found]
low = [100 * one.expected.low for one in found]
high = [100 * one.expected.high for one in found]
ax.fill_between(epsilons, low, high, alpha=0.25, label="nine of ten studies")
ax.plot(epsilons, middle, "o-", label="expected")
ax.axhline(100 * found[0].guessing, color="gray", ls="--", label="guessing")
ax.axhline(10, color="k", ls=":", label="without privacy")
ax.set(xscale="log", xlabel="ε of one person", ylabel="wrong, %", title="1000 people", ylim=0)
ax.legend()
plt.show()
