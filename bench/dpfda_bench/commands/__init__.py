"""``dpfda bench`` and ``dpfda reproduce``: `dpfda` finds them through entry points."""
