"""The task types, found by name: ``Task.named("stump")``.

One file contains yes/no questions, the other one vectors.
"""

from dpfda._registry import discover

discover(__name__, list(__path__))
