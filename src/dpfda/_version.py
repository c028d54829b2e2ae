"""The version, read by the build and by `dpfda --version`."""

__version__ = "0.1.0"
