"""Studies of owners whose rows are at sites: boosting, one perturbed share an owner."""
