"""What every estimator shows its user: the same names, ranges, input and refusals."""
