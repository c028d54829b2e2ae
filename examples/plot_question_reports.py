"""
# What a reply discloses

The true answers to two yes/no questions are sent with some probability, and each of the three other
pairs of answers with the same smaller probability. The reply therefore discloses little about the
true answers: the likelihoods of any two pairs differ by at most a factor e^ε.
"""

import matplotlib.pyplot as plt
import numpy as np

epsilons = [0.1, 0.5, 1, 2, 4]
patterns = 4
true = np.array([np.exp(e) / (np.exp(e) + patterns - 1) for e in epsilons])
other = (1 - true) / (patterns - 1)
print(np.round(true / other, 2), "are the odds: e^ε")

# %%
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
places = np.arange(len(epsilons))
ax.bar(places, true, label="the true pattern")
for k in range(patterns - 1):
    ax.bar(places, other, bottom=true + k * other, color=str(0.6 + 0.12 * k), edgecolor="w")
ax.bar([], [], color="0.7", label="each of the others")
ax.set(xticks=places, xticklabels=[f"ε = {e:g}" for e in epsilons], ylabel="probability of a reply")
ax.legend()
plt.show()
