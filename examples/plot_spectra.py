"""
# Spectra: a private rule

A laboratory holds two thousand spectra of two kinds of samples. It may publish a private
classifier, but no spectrum.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateCurveClassifier

rng = np.random.default_rng(1)
wave = np.linspace(850, 1050, 80)


def spectra(n):
    """Absorbances: a base line, a broad band, and a narrow band that one kind has more of."""
    kind = rng.integers(0, 2, n)
    base = rng.normal(2.8, 0.15, (n, 1)) + 0.1 * rng.normal(size=(n, 1)) * (wave - 950) / 100
    broad = 0.3 * np.exp(-(((wave - 970) / 40) ** 2))
    narrow = (0.1 + 0.12 * kind + rng.normal(0, 0.04, n))[:, None]
    return base + broad + narrow * np.exp(-(((wave - 930) / 12) ** 2)), np.array(["A", "B"])[kind]


X, y = spectra(2000)
new, truth = spectra(2000)

# %%
epsilons = [0.1, 0.3, 1, 3]
errors = []
for epsilon in epsilons:
    rule = PrivateCurveClassifier(
        epsilon, value_range=(1, 5), classes=("A", "B"), random_state=0
    ).fit(X, y, grid_points=wave)
    errors.append(100 * np.mean(rule.predict(new, grid_points=wave) != truth))
print(rule.guarantee_)
print(dict(zip(epsilons, np.round(errors, 1).tolist(), strict=True)))

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for kind, color in (("A", "tab:blue"), ("B", "tab:orange")):
    axes[0].plot(wave, X[y == kind][:20].T, color=color, lw=0.5, alpha=0.6)
axes[0].set(
    xlabel="wavelength, nm", ylabel="absorbance", title="twenty of each kind: they stay inside"
)
axes[1].plot(epsilons, errors, "o-", label="private rule")
axes[1].axhline(50, color="gray", ls="--", label="guessing")
axes[1].set(xscale="log", xlabel="ε", ylabel="new spectra told wrongly, %", ylim=0)
axes[1].legend()
plt.show()
