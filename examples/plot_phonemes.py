"""
# Phonemes: five classes

Means, sizes and covariances of five groups are released together, with the ε of one release. A
discriminant rule is computed from them.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateCurveClassifier

rng = np.random.default_rng(5)
frequency = np.linspace(0, 8, 100)
sounds = ("aa", "ao", "dcl", "iy", "sh")
formants = {
    "aa": (0.7, 1.2),
    "ao": (0.6, 0.9),
    "dcl": (0.3, 0.5),
    "iy": (0.3, 2.3),
    "sh": (2.5, 4.5),
}


def frames(n):
    """Log-periodograms with two formants each, made up."""
    label = rng.choice(sounds, n)
    shift = rng.normal(0, 0.12, (n, 2))
    places = np.array([formants[one] for one in label]) + shift
    peaks = sum(np.exp(-(((frequency - places[:, [k]]) / 0.5) ** 2)) for k in (0, 1))
    noise = rng.normal(0, 0.6, (n, 1)) + rng.normal(0, 0.5, (n, 100))
    return 14 + 6 * peaks - 0.6 * frequency + noise, label


X, y = frames(4000)
new, truth = frames(2000)

# %%
rule = PrivateCurveClassifier(1.0, value_range=(0, 30), classes=sounds, random_state=0)
rule.fit(X, y, grid_points=frequency)
found = rule.predict(new, grid_points=frequency)
print(rule.guarantee_)
print(f"{100 * np.mean(found != truth):.1f} % wrong, guessing {100 * (1 - 1 / 5):.0f} %")

# %%
table = np.array([[np.mean(found[truth == a] == b) for b in sounds] for a in sounds])
fig, ax = plt.subplots(figsize=(4.6, 3.8), layout="constrained")
shown = ax.imshow(table, cmap="Blues", vmin=0, vmax=1)
for (i, j), share in np.ndenumerate(table):
    ax.text(j, i, f"{share:.2f}", ha="center", va="center", color="w" if share > 0.6 else "k")
ax.set(xticks=range(5), yticks=range(5), xticklabels=sounds, yticklabels=sounds)
ax.set(xlabel="said by the rule", ylabel="true sound")
fig.colorbar(shown, label="share of the true sound")
plt.show()
