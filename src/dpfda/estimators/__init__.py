"""All scikit-learn classes, one file each, and their base classes, readers and reports."""
