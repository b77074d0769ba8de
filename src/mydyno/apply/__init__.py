"""The only module that changes a setting: consent, record, act, observe again; and back."""

from mydyno.apply.apply import apply, recorded, rollback
from mydyno.apply.consent import consent

__all__ = ["apply", "consent", "recorded", "rollback"]
