"""
# Reproducing a figure

`dpfda reproduce --list` lists every reproduced table and figure of the five papers. Each entry is
a module that returns rows, notes and a function that draws. This entry evaluates formulas for the
noise of 002 on the coefficients of a regression, as published and as corrected.
"""

import matplotlib.pyplot as plt

from dpfda_bench.catalog import reproduction, reproduction_names

print(len(reproduction_names()), "entries")
entry = reproduction("002-figure-a1")
outcome = entry.run()
print(entry.TITLE)
for note in outcome.notes:
    print(note)

# %%
outcome.plot()
plt.show()
