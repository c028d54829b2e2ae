"""Before anybody is asked: what error a study will have, or how many people or which ε it needs."""
