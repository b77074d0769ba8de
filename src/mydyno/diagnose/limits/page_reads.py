"""Pages are read within microseconds, and the CPU time that their reads cost is the limit."""

from mydyno.diagnose.account import CPU, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, quotient, share

LIMIT = Limit(
    "page_reads",
    "the size of the buffer pool, as page reads take CPU time",
    (CPU,),
    signs=(
        # a fifth of the CPU: with all CPUs busy, a read cost MariaDB 10.11 31 us, MySQL 8.0 47
        quotient(
            "pages read per second of the server's CPUs",
            ("status.innodb_pages_read", "process.cpu_user:mysqld", "process.cpu_system:mysqld"),
            5000.0,
            "/s",
        ),
        share(0.5, CPU, RUN_QUEUE),
    ),
    doses=("mysqld.innodb_buffer_pool_size",),
)
