"""What limits a load: the account of its connections, suspects, and proof by doses; pure."""

from mydyno.diagnose.account import account
from mydyno.diagnose.diagnosis import Diagnosis, Proof, Subject, diagnosis, with_proofs, worth
from mydyno.diagnose.suspects import (
    LoadEvidence,
    Seen,
    Suspect,
    suspects,
)

__all__ = [
    "Diagnosis",
    "LoadEvidence",
    "Proof",
    "Seen",
    "Subject",
    "Suspect",
    "account",
    "diagnosis",
    "suspects",
    "with_proofs",
    "worth",
]
