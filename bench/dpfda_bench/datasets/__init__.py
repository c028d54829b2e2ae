"""The papers' data sets, read from files that users download themselves.

Every `load_*` takes `path` (the file or its folder; by default the folder named by DPFDA_DATA),
checks the file's sha256 and shape (`verify=False` for your own conversion of the source) and, if
the file is missing, says where to get it. Nothing is bundled.
"""

from dpfda_bench.datasets.catalogue import CATALOGUE, DataFile, DataFileMissing
from dpfda_bench.datasets.curve_sets import (
    load_activity,
    load_adelaide_demand,
    load_aemet,
    load_canadian_weather,
    load_dti,
    load_growth,
    load_gunpoint,
    load_italy_power_demand,
    load_phoneme,
    load_tecator,
    load_un_deaths,
    load_un_mortality,
)
from dpfda_bench.datasets.vector_sets import (
    load_adult,
    load_crime,
    load_diabetes,
    load_fashion,
    load_kdd,
    load_mnist_4_9,
    load_phishing,
    load_twitter,
    load_warfarin,
)

__all__ = [
    "CATALOGUE",
    "DataFile",
    "DataFileMissing",
    "load_activity",
    "load_adelaide_demand",
    "load_adult",
    "load_aemet",
    "load_canadian_weather",
    "load_crime",
    "load_diabetes",
    "load_dti",
    "load_fashion",
    "load_growth",
    "load_gunpoint",
    "load_italy_power_demand",
    "load_kdd",
    "load_mnist_4_9",
    "load_phishing",
    "load_phoneme",
    "load_tecator",
    "load_twitter",
    "load_un_deaths",
    "load_un_mortality",
    "load_warfarin",
]
