"""Learning from curves that nobody may see: differential privacy for functional data.

The names below are loaded when they are first used, so that ``import dpfda`` stays light: it needs
numpy, scipy, msgspec and cryptography only.

Example:
    >>> from dpfda import Guarantee
    >>> print(Guarantee(epsilon=0.5, model="local"))
    ε = 0.5, local, unit = person, sampler = exact
"""

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpfda._version import __version__
from dpfda.errors import MissingExtra

if TYPE_CHECKING:  # what type checkers and editors see; the same names as in _HOMES
    from dpfda.boosting.classifier import LocalBoostingClassifier as LocalBoostingClassifier
    from dpfda.central.covariance import PrivateCovariance as PrivateCovariance
    from dpfda.central.density import PrivateDensity as PrivateDensity
    from dpfda.central.function_on_scalar import PrivateFunctionOnScalar as PrivateFunctionOnScalar
    from dpfda.central.kernel_machine import PrivateKernelMachine as PrivateKernelMachine
    from dpfda.central.mean import PrivateMean as PrivateMean
    from dpfda.central.score import private_score as private_score
    from dpfda.client.remote import RemoteClient as RemoteClient
    from dpfda.curves import CurveEncoder as CurveEncoder
    from dpfda.documents import load as load
    from dpfda.estimators.local import LocalCurveClassifier as LocalCurveClassifier
    from dpfda.estimators.moment import MomentClassifier as MomentClassifier
    from dpfda.mechanisms import Mechanism as Mechanism
    from dpfda.mrma.classifier import MRMAClassifier as MRMAClassifier
    from dpfda.mrma.multi_server import MultiServerMRMA as MultiServerMRMA
    from dpfda.mrma.online import OnlineMRMA as OnlineMRMA
    from dpfda.noise import SecureSource as SecureSource
    from dpfda.noise import SimulationSource as SimulationSource
    from dpfda.privacy.guarantee import Guarantee as Guarantee
    from dpfda.privacy.ledger import Ledger as Ledger
    from dpfda.privacy.tally import budget as budget
    from dpfda.privacy.tally import spent as spent
    from dpfda.protocol.person import Person as Person
    from dpfda.questions.recipe import plan_study as plan_study
    from dpfda.regression.decentralized import DecentralizedRegression as DecentralizedRegression
    from dpfda.regression.estimators import PrivateLinearRegression as PrivateLinearRegression
    from dpfda.regression.estimators import PrivateLogisticRegression as PrivateLogisticRegression

_HOMES = {
    "CurveEncoder": "dpfda.curves",
    "DecentralizedRegression": "dpfda.regression.decentralized",
    "Guarantee": "dpfda.privacy.guarantee",
    "Ledger": "dpfda.privacy.ledger",
    "LocalBoostingClassifier": "dpfda.boosting.classifier",
    "LocalCurveClassifier": "dpfda.estimators.local",
    "MRMAClassifier": "dpfda.mrma.classifier",
    "Mechanism": "dpfda.mechanisms",
    "MomentClassifier": "dpfda.estimators.moment",
    "MultiServerMRMA": "dpfda.mrma.multi_server",
    "OnlineMRMA": "dpfda.mrma.online",
    "Person": "dpfda.protocol.person",
    "PrivateCovariance": "dpfda.central.covariance",
    "PrivateDensity": "dpfda.central.density",
    "PrivateFunctionOnScalar": "dpfda.central.function_on_scalar",
    "PrivateKernelMachine": "dpfda.central.kernel_machine",
    "PrivateLinearRegression": "dpfda.regression.estimators",
    "PrivateLogisticRegression": "dpfda.regression.estimators",
    "PrivateMean": "dpfda.central.mean",
    "RemoteClient": "dpfda.client.remote",
    "SecureSource": "dpfda.noise",
    "SimulationSource": "dpfda.noise",
    "budget": "dpfda.privacy.tally",
    "load": "dpfda.documents",
    "plan_study": "dpfda.questions.recipe",
    "private_score": "dpfda.central.score",
    "spent": "dpfda.privacy.tally",
}
"""Every public name, and the module that it lives in."""

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 (the names are strings)


if not TYPE_CHECKING:  # otherwise checkers would take every name for a public one

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            near = get_close_matches(name, _HOMES, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"module 'dpfda' has no attribute {name!r}{meant}")
        try:
            value = getattr(import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            raise MissingExtra.of(error) or error from None
        globals()[name] = value  # the next look-up does not come here
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
