"""
# Owners with a few rows each

Three thousand owners have four rows each. In every round a new group of owners sends one short
message. No owner is asked twice.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import LocalGradientBoostingClassifier

rng = np.random.default_rng(7)


def rows(n):
    """Two classes whose first two features differ."""
    label = rng.integers(0, 2, n)
    features = rng.normal(size=(n, 6))
    features[:, :2] += 1.2 * (2 * label - 1)[:, None]
    return features, label


X, y = rows(12_000)
owners = np.repeat(np.arange(3000), 4)
reference, _ = rows(500)
test, truth = rows(4000)

# %%
epsilons = [0.25, 0.5, 1, 2, 4]
errors = []
for epsilon in epsilons:
    model = LocalGradientBoostingClassifier(epsilon=epsilon, random_state=0)
    model.fit(X, y, groups=owners, reference=reference)
    errors.append(100 * np.mean(model.predict(test) != truth))
print(model.guarantee_)

# %%
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(epsilons, errors, "o-", label="boosted, private")
best = 100 * np.mean((test[:, 0] + test[:, 1] > 0) != truth)
ax.axhline(best, color="k", ls=":", label="the best rule there is")
ax.axhline(50, color="gray", ls="--", label="guessing")
ax.set(xscale="log", xlabel="ε of an owner", ylabel="wrong, %", ylim=0)
ax.legend()
plt.show()
