# One round trip: what of the host matters to the server with this pid and this data folder.
# It stands after DISKS of host/disks.py.  Each section begins with a line of the mark and its name; what cannot be read is left out.
mark=$1 pid=$2 data=$3
say() { printf '%s %s\n' "$mark" "$1"; }
line() { [ -r "$2" ] && printf '%s=%s\n' "$1" "$(head -n1 "$2")"; }
say meminfo; cat /proc/meminfo
say process; cat "/proc/$pid/status"
say limits; cat "/proc/$pid/limits"
if [ -r "/proc/$pid/maps" ]; then
    say maps; grep -o '[^ ]*malloc[^ ]*' "/proc/$pid/maps" | sort -u
fi
say sysctl
for key in vm.swappiness vm.dirty_ratio vm.dirty_background_ratio vm.dirty_bytes \
    vm.dirty_background_bytes vm.overcommit_memory vm.max_map_count vm.zone_reclaim_mode \
    vm.nr_hugepages fs.aio-nr fs.aio-max-nr fs.file-max fs.nr_open net.core.somaxconn \
    net.ipv4.tcp_max_syn_backlog kernel.numa_balancing kernel.io_uring_disabled
do line "$(echo "$key" | tr .- __)" "/proc/sys/$(echo "$key" | tr . /)"; done
say system
line thp /sys/kernel/mm/transparent_hugepage/enabled
line thp_defrag /sys/kernel/mm/transparent_hugepage/defrag
awk '$1 == "c_max" {print "arc_max=" $3}' /proc/spl/kstat/zfs/arcstats 2>/dev/null # also its default
line governor /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
line name /proc/sys/kernel/hostname
line kernel /proc/sys/kernel/osrelease
printf 'cores=%s\n' "$(grep -c ^processor /proc/cpuinfo)"
printf 'numa_nodes=%s\n' "$(ls -d /sys/devices/system/node/node[0-9]* 2>/dev/null | wc -l)"
for word in $(cat /proc/cmdline); do case $word in elevator=*) echo "$word";; esac; done
say cgroup
path=$(sed -n 's/^0:://p' "/proc/$pid/cgroup"); v1=$(sed -n 's/^[0-9]*:memory://p' "/proc/$pid/cgroup")
line memory_max "/sys/fs/cgroup$path/memory.max"
v1cpu=$(sed -n 's/^[0-9]*:\([^:]*,\)*cpu\(,[^:]*\)*://p' "/proc/$pid/cgroup")
if [ -n "$v1cpu" ]; then
    g=/sys/fs/cgroup/cpu$v1cpu
    q=$(cat "$g/cpu.cfs_quota_us" 2>/dev/null)
    [ -n "$q" ] && printf 'cpu_max=%s %s\n' "$(echo "$q" | sed s/-1/max/)" "$(cat "$g/cpu.cfs_period_us")"
else line cpu_max "/sys/fs/cgroup$path/cpu.max" || echo "cpu_max=max 100000" # no quota of its own
fi
line memory_peak "/sys/fs/cgroup$path/memory.peak"
[ -n "$v1" ] && line memory_max "/sys/fs/cgroup/memory$v1/memory.limit_in_bytes"
say data; find "$data" -xdev \( -name "*.ibd" -o -name "ibdata*" \) -printf "%s\n" 2>/dev/null | awk "{s+=\$1} END {print s+0}"
say nic
for n in /sys/class/net/*; do
    [ -e "$n/device" ] || continue
    printf '%s %s Mbit/s %s\n' "${n##*/}" "$(cat "$n/speed" 2>/dev/null || echo unknown)" "$(basename "$(readlink -f "$n/device/driver")")"
done
say unit; sed -n 's/.*\/\([^/]*\.service\).*/\1/p' "/proc/$pid/cgroup" | head -n1
say managers
for p in /proc/[0-9]*/comm; do
    read -r name <"$p" 2>/dev/null || continue
    case $name in pacemakerd|corosync|orchestrator|replication-man|mysqlrouter) echo "$name";; esac
done
grep -q kubepods "/proc/$pid/cgroup" && echo kubepods
say mount; findmnt -n -o FSTYPE,OPTIONS -T "$data"
say fstab; target=$(findmnt -n -o TARGET -T "$data")
awk -v t="$target" '$1 !~ /^#/ && $2 == t {print $4}' /etc/fstab 2>/dev/null
say sysctl_files
for f in /etc/sysctl.conf /etc/sysctl.d/*.conf; do
    [ -r "$f" ] && sed -n 's/^[[:space:]]*\([a-z][a-z0-9_.\/-]*\)[[:space:]]*=[[:space:]]*\(.*\)$/\1 \2/p' "$f" |
    while read -r key value; do
        now=$(head -n1 "/proc/sys/$(echo "$key" | tr . /)" 2>/dev/null) || continue
        printf '%s\t%s\t%s\t%s\n' "$f" "$key" "$value" "$now"
    done
done
say limits_conf; grep -hsE '^mysql[[:space:]].*nofile' /etc/security/limits.conf /etc/security/limits.d/*.conf
say queue
source=$(findmnt -n -o SOURCE -T "$data"); source=${source%%\[*}
all=$(disks "$(basename "$(readlink -f "$source")")" | sort -u)
name=$(echo "$all" | head -n1) at=/sys/class/block/$name
if [ -n "$name" ] && [ -d "$at/queue" ]; then
    printf 'name=%s\ndisks=%s\nqueues=%s\n' "$name" "$(echo "$all" | paste -sd,)" "$(ls "$at/mq" 2>/dev/null | wc -l)"
    for key in scheduler rotational read_ahead_kb nr_requests write_cache wbt_lat_usec nomerges rq_affinity
    do line "$key" "$at/queue/$key"; done
    printf 'schedulers=%s\n' "$(tr -d '[]' <"$at/queue/scheduler")"
fi
true
