"""Local studies by one posterior, from which the next questions are chosen.

Two classes by yes/no answers: `beliefs` contains the prior, `answers` the likelihood, `posterior`
the posterior, `worth` the choice of the next questions, `rule` the classifier, and `study` the
whole study from the first person to the last.

Tables, several classes and numbers by vector reports: `columns` locates single columns, `moments`
estimates their covariance, `reports` defines the reports and their expectation, `slopes` is the
posterior, and `vectors` the whole study.
"""
