"""
# Heart rate by phone

Each of three thousand phones holds a heart-rate curve and a label: whether the owner slept badly.
Each phone answers a few yes/no questions once, with randomized answers. The picture shows the
error of such a study at several ε, next to guessing and to a study without privacy.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpfda import LocalCurveClassifier

rng = np.random.default_rng(0)
hours = np.linspace(0, 8, 33)


def nights(n):
    """Heart rates of n nights, and whether they were bad: those fall later."""
    bad = rng.integers(0, 2, n)
    fall = 2.5 + 2.0 * bad + rng.normal(0, 0.8, n)
    rate = 70 - 12 / (1 + np.exp(fall[:, None] - hours)) + rng.normal(0, 3, (n, 1))
    return rate, np.where(bad, "bad", "good")


people, labels = nights(3000)
others, truth = nights(3000)

# %%
# The range of a heart rate at night and the two labels are public; the label of a person is not.
epsilons = [0.25, 0.5, 1, 2, 4]
rows = []
for epsilon in epsilons:
    study = LocalCurveClassifier(
        epsilon=epsilon, value_range=(40, 110), classes=("good", "bad"), random_state=0
    ).fit(people, labels, grid_points=hours)
    rows.append(study.evaluate(others, truth, grid_points=hours).errors)
print(study.guarantee_)

# %%
# The majority class and the non-private error are shown next to every result.
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for label, color in (("good", "tab:blue"), ("bad", "tab:red")):
    axes[0].plot(hours, others[truth == label][:15].T, color=color, lw=0.6, alpha=0.6)
axes[0].set(xlabel="hour of the night", ylabel="beats a minute", title="what stays on the phones")
for name in rows[0]:
    axes[1].plot(epsilons, [100 * errors[name] for errors in rows], "o-", label=name)
axes[1].set(xscale="log", xlabel="ε of one person", ylabel="nights told wrongly, %", ylim=0)
axes[1].legend()
plt.show()
