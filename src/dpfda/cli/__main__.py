"""``python -m dpfda.cli`` is ``dpfda``."""

from dpfda.cli import main

if __name__ == "__main__":
    main()
