"""The collector: a study over HTTP. Read `service.py` first; `api.py` only translates.

The learning code is that of every other transport (`dpfda.protocol`): a person asks for a task,
sends one reply, and is done. What is stored are public tasks and randomized replies, nothing else.
"""
