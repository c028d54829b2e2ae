"""
# Hospitals together

Ten hospitals fit one regression. Only sums are opened, and each hospital adds a share of the
noise. A single hospital would have a tenth of the rows and would have to add all of the noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import PrivateLinearRegression, rehearse

rng = np.random.default_rng(6)
X = rng.uniform(-1, 1, (10_000, 4))
y = (X @ [0.4, -0.3, 0.2, 0.1] + rng.normal(0, 0.1, 10_000)).clip(-1, 1)
site = np.repeat([f"hospital {i}" for i in range(10)], 1000)
public = {"feature_ranges": (-1, 1), "target_range": (-1, 1), "delta": 1e-6}
epsilons = [0.1, 0.3, 1]


def error(model):
    """Squared error in parts of the variance of y."""
    return np.mean((model.predict(X) - y) ** 2) / y.var()


# %%
rows = {"one hospital alone": [], "ten hospitals, rehearsed": [], "one place with all rows": []}
for epsilon in epsilons:
    fits = {name: [] for name in rows}
    for seed in range(5):
        model = PrivateLinearRegression(epsilon, random_state=seed, **public)
        fits["one hospital alone"].append(error(model.fit(X[:1000], y[:1000])))
        fits["one place with all rows"].append(error(model.fit(X, y)))
        together, _ = rehearse(model, X, y, sites=site, colluders=0)
        fits["ten hospitals, rehearsed"].append(error(together))
    for name, values in fits.items():
        rows[name].append(np.mean(values))
print(together.guarantee_)

# %%
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for (name, errors), style in zip(rows.items(), ("s--", "o-", "x:"), strict=True):
    ax.plot(epsilons, errors, style, label=name)
ax.axhline(1, color="gray", ls="--", lw=0.8)
ax.text(epsilons[0], 1.03, "predicting the mean", color="gray")
ax.set(xscale="log", yscale="log", xlabel="ε", ylabel="squared error / variance")
ax.legend()
plt.show()
