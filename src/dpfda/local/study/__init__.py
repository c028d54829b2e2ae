"""A study of two classes by one posterior: what is asked follows from what is believed.

`beliefs` says what is held likely before anybody answers, `answers` how likely answers are,
`posterior` what both say together, `worth` what is asked next, `rule` which classifier follows,
and `study` is the whole from the first person to the last.
"""
