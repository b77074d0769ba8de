"""What limits a load: the account of its connections, suspects, and proof by doses; pure."""

from mydyno.diagnose.account import Account, AccountLine, account
from mydyno.diagnose.diagnosis import Diagnosis, Proof, Subject, diagnosis, with_proofs, worth
from mydyno.diagnose.suspects import (
    Limit,
    LoadEvidence,
    Seen,
    Suspect,
    Suspicion,
    known_limits,
    suspects,
)

__all__ = [
    "Account",
    "AccountLine",
    "Diagnosis",
    "Limit",
    "LoadEvidence",
    "Proof",
    "Seen",
    "Subject",
    "Suspect",
    "Suspicion",
    "account",
    "diagnosis",
    "known_limits",
    "suspects",
    "with_proofs",
    "worth",
]
