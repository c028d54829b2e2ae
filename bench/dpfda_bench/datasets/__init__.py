"""The papers' data sets, read from files that users download themselves: curves, and vectors.

Every `load_*` takes `path` (the file or its folder; by default the folder named by DPFDA_DATA),
checks the file's sha256 and shape (`verify=False` for your own conversion of the source) and, if
the file is missing, says where to get it. Nothing is bundled.
"""
