"""A package of somebody else brings a mechanism, a basis and a learner; nothing here names them."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guides" / "extend.md"
ABOUT = "dpfda_mine-1.0.dist-info"


def module() -> str:
    """The code of the guide, as a reader would copy it."""
    return GUIDE.read_text().split('```py title="dpfda_mine.py"\n')[1].split("```")[0]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel, installed beside dpfda."""
    folder = tmp_path_factory.mktemp("plugin")
    wheel = folder / "dpfda_mine-1.0-py3-none-any.whl"
    files = {
        "dpfda_mine.py": module(),
        f"{ABOUT}/METADATA": "Metadata-Version: 2.1\nName: dpfda-mine\nVersion: 1.0\n",
        f"{ABOUT}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{ABOUT}/entry_points.txt": "[dpfda.plugins]\nmine = dpfda_mine\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{ABOUT}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, f"{ABOUT}/RECORD": record}.items():
            archive.writestr(name, text)
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*command, "--target", str(folder / "site"), str(wheel)], check=True)
    return folder / "site"


def call(installed: Path, *arguments: str) -> str:
    paths = [str(installed), *filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT / "src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_audit_attacks_it(installed: Path) -> None:
    command = ["-m", "dpfda.cli", "audit", "half_laplace", "--draws", "50000"]
    assert "half_laplace" in call(installed, *command)


def test_an_estimator_uses_all_three(installed: Path) -> None:
    code = """
import numpy as np
from dpfda import CurveEncoder, MRMAClassifier
rng = np.random.default_rng(0)
y = rng.integers(0, 2, 400)
X = rng.normal(size=(400, 20)) * 0.1 + y[:, None] * 0.5
model = MRMAClassifier(epsilon=8.0, classes=(0, 1), mechanism="half_laplace",
                       learner="ridge_logistic", random_state=1,
                       encoder=CurveEncoder("flipped_cosine", n_basis=2))
print(model.fit(X, y).predict(X[:5]).shape)
"""
    assert call(installed, "-c", code).strip() == "(5,)"


def test_without_it_its_names_are_unknown(tmp_path: Path) -> None:
    code = "from dpfda.mechanisms import Mechanism; print('half_laplace' in Mechanism.members())"
    assert call(tmp_path, "-c", code).strip() == "False"
