"""``dpfda bench proof_of_work``: whether computing for a place would keep one party out of a study.

A device would search for a number whose SHA-256 begins with zeros. What counts is how many digests
a browser computes beside one processor of whoever wants many places.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time

from dpfda.errors import DpfdaError
from dpfda.report.contents import Outcome
from dpfda_bench.goals import Goal

GOALS: dict[str, Goal] = {}  # it decides whether there is such an option: there is none

_SECONDS = 5.0  # that a participant would wait
_PLACES = 300  # as many as one address once had of a study of 300
_IN_A_BROWSER = """
const one = new Uint8Array(64), number = Number(process.argv[1]);
const began = process.cpuUsage();
for (let i = 0; i < number; i += 1) await crypto.subtle.digest("SHA-256", one);
const spent = process.cpuUsage(began);
console.log(number / ((spent.user + spent.system) / 1e6));
"""


def run(quick: bool = False) -> Outcome:
    """Digests of one processor second in a browser's engine (Node.js) and outside of it."""
    number = 20_000 if quick else 500_000
    device, attacker = _in_a_browser(number), _outside(number)
    return Outcome(
        figures={
            "device_per_s": device,
            "attacker_per_s": attacker,
            "seconds_for_300_places": _PLACES * _SECONDS * device / attacker,
        },
        notes=[
            f"Each place costs a device {_SECONDS:g} seconds. The attacker has one processor of "
            "this machine and Python's hashlib; optimized programs and graphics cards are faster."
        ],
    )


def _in_a_browser(number: int) -> float:
    node = shutil.which("node")
    if node is None:
        raise DpfdaError("Node.js is not installed: it computes as a browser does")
    command = [node, "--input-type=module", "--eval", _IN_A_BROWSER, str(number)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _outside(number: int) -> float:
    began, one = time.process_time(), bytes(64)
    for _ in range(number):
        hashlib.sha256(one)
    return number / (time.process_time() - began)
