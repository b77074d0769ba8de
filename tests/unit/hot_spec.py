"""The spec of a switchback: two treatments that differ by a variable of the running server."""

HOT = """
[treatments.A]
[treatments.B]
"mysqld.sort_buffer_size" = 65536
[workloads.w]
tool = "sysbench-oltp"
script = "oltp_read_only"
[design]
kind = "switchback"
budget = "2h"
"""
