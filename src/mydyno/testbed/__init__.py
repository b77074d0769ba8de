"""The stack under test, put together: preflight, lock, servers, data sets, lab disks and link."""
