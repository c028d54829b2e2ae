"""Local studies by one posterior: what is asked follows from what is believed.

Two classes by yes-or-no answers: `beliefs` says what is held likely before anybody answers,
`answers` how likely answers are, `posterior` what both say together, `worth` what is asked next,
`rule` which classifier follows, and `study` is the whole from the first person to the last.

Tables, several classes and numbers by vector reports: `columns` finds where columns lie, `moments`
how they vary together, `reports` says what is asked and what the mean report would be, `slopes` is
the posterior, and `vectors` the whole.
"""
