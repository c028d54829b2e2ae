"""
# Auditing broken mechanisms

Each of these mechanisms claims an ε that it does not have. The mistakes are from publications or
from released software. An audit draws reports, searches for an event that distinguishes two people,
and computes a lower bound on the true ε from its frequencies.
"""

import matplotlib.pyplot as plt

from dpfda import Mechanism, SimulationSource
from dpfda.checks.twins import all_twins
from dpfda.privacy.audit import audit

cases = {"randomized response (sound)": Mechanism.named("randomized_response")(epsilon=1.0)}
for name in ("wrong_keep_probability", "float_laplace", "unrounded_sum"):
    cases[name.replace("_", " ") + " (broken)"] = all_twins()[name]()
results = {
    name: audit(one, name=name, draws=100_000, source=SimulationSource(0))
    for name, one in cases.items()
}
for name, result in results.items():
    print(f"{name}: claimed {result.claimed_epsilon:g}, at least {result.lower_bound:.2f}")

# %%
fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
colors = ["tab:green" if one.passed else "tab:red" for one in results.values()]
ax.barh(list(results), [one.lower_bound for one in results.values()], color=colors)
ax.axvline(1, color="k", ls="--")
ax.text(1.05, -0.35, "claimed", va="center")
ax.set(xlabel="true ε is at least (99.9 % confidence)")
ax.invert_yaxis()
plt.show()
