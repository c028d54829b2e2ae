"""Ray and Spark as the page about large data writes them; `make engines` installs both."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from summed_cases import TABLE, TARGET

import dpfda

pandas = pytest.importorskip("pandas")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "large-data.md"
FEW = 500
pytestmark = pytest.mark.filterwarnings("ignore")


def line() -> Any:
    known: Any = {"feature_ranges": (-1, 1), "target_range": (-1, 1), "random_state": 0}
    return dpfda.PrivateLinearRegression(1.0, **known)


@pytest.fixture(scope="module")
def adapters() -> dict[str, Any]:
    """The classes of the page."""
    found: dict[str, Any] = {"np": np}
    for code in re.findall(r"```text\n(class On.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
        exec(code, found)
    return found


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    table = pandas.DataFrame(TABLE[:FEW], columns=["a", "b", "c"]).assign(y=TARGET[:FEW])
    for number, part in enumerate(np.array_split(np.arange(FEW), 6)):
        table.iloc[part].to_parquet(folder / f"{number}.parquet", index=False)
    return folder


def dying(adapter: Any, mark: Path) -> Any:
    """The same, but the first process that works on a block is killed."""
    gather = adapter.gather

    def killed_once(work: Any) -> Any:
        def dies(block: Any) -> Any:
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                return work(block)
            return os.kill(os.getpid(), signal.SIGKILL)

        return gather(dies)

    adapter.gather = killed_once
    return adapter


@pytest.mark.parametrize("dies", [False, True])
def test_ray(adapters: Any, lake: Path, tmp_path: Path, dies: bool) -> None:
    ray = pytest.importorskip("ray")
    whole = line().fit(TABLE[:FEW], TARGET[:FEW]).coef_
    helpers, source = str(Path(__file__).parent), str(Path(dpfda.__file__).parents[1])
    paths = {"PYTHONPATH": os.pathsep.join([source, helpers])}
    with ray.init(num_cpus=2, runtime_env={"env_vars": paths}, include_dashboard=False):
        adapter = adapters["OnRay"](ray.data.read_parquet(str(lake)), ["a", "b", "c"], "y")
        adapter = dying(adapter, tmp_path / "died") if dies else adapter
        assert np.array_equal(line().fit_stream(adapter).coef_, whole)
        assert (tmp_path / "died").exists() == dies


@pytest.mark.parametrize("dies", [False, True])
def test_spark(adapters: Any, lake: Path, tmp_path: Path, dies: bool) -> None:
    sql = pytest.importorskip("pyspark.sql")
    whole = line().fit(TABLE[:FEW], TARGET[:FEW]).coef_
    build = sql.SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    spark = build.getOrCreate()
    try:
        adapter = adapters["OnSpark"](spark.read.parquet(str(lake)), ["a", "b", "c"], "y")
        adapter = dying(adapter, tmp_path / "died") if dies else adapter
        assert np.array_equal(line().fit_stream(adapter).coef_, whole)
        assert (tmp_path / "died").exists() == dies
    finally:
        spark.stop()
