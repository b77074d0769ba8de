"""The test environment of a campaign: servers, data sets, lab disks and the lab link."""
