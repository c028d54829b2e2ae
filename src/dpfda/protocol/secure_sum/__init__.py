"""Sites add vectors without revealing a single one (Bonawitz et al. 2017).

A round in five steps; every arrow is a message, and who carries it is not decided here:

    1 advertise   site -> all          fresh, signed X25519 keys
    2 share       site -> each site    sealed Shamir shares of its mask key and self-mask seed
    3 mask        site -> aggregator   noisy vector + pairwise masks + self mask, modulo 2^64
    4 confirm     site -> all          a signature on the set of sites whose vector arrived
    5 unmask      site -> aggregator   shares: of the seed of those who are in the set, of the
                                       mask key of those who are not, never both

Each step comes once a round. Everything from step 2 on is bound to the whole list of keys; list and
set are signed by the coordinator, so that one who tells two sites two things learns nothing and is
named (`Cheated`).

The aggregator learns the sum over the set, or nothing and why. Each site's vector carries its own
discrete-Gaussian noise, drawn once per stage, so that the honest survivors' noise alone is enough.
"""

from dpfda.protocol.secure_sum.aggregator import Aggregator, add_up
from dpfda.protocol.secure_sum.crypto import Identity
from dpfda.protocol.secure_sum.member import Member
from dpfda.protocol.secure_sum.messages import Cheated, RoundFailed, Terms

__all__ = ["Aggregator", "Cheated", "Identity", "Member", "RoundFailed", "Terms", "add_up"]
