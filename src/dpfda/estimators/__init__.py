"""Every scikit-learn class, one file each, and what they have in common."""
