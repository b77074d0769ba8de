"""A check that warns how many trials the campaign has."""

from mydyno.model import Finding
from mydyno.stats.checks import CampaignEvidence, Check


def _counted(campaign: CampaignEvidence) -> Finding:
    return Finding("counted", {"trials": len(campaign.outcomes)})


CHECK = Check("counted", CampaignEvidence, _counted)
