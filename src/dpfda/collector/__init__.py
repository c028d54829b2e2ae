"""The collector runs studies over HTTP. Read `service.py` first; `api.py` only translates.

The learning code is the same as for every other transport (`dpfda.protocol`). Each person requests
one task and sends one reply. Only public tasks and randomized replies are stored.
"""
