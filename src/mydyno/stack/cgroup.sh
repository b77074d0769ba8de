# cgroup.sh join|online|show|remove|refusal GROUP …: the control group of a private server, in the tree
# of version 1 that has `cpu`, else in that of version 2.  What counts CPU time may be in a tree apart.
what=$1
for root in /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/cpu /sys/fs/cgroup; do
    [ -e "$root/cgroup.procs" ] && break
done
group=$root/$2 groups=$root/$2 apart=/sys/fs/cgroup/cpuacct
[ -e "$apart/cgroup.procs" ] && [ ! -L "$apart" ] && groups="$group $apart/$2"

# Gives the group `QUOTA PERIOD`; version 1 refuses one of the two that does not go with the other.
give() {
    if [ -e "$group/cpu.max" ]; then
        echo "$1" >"$group/cpu.max"
    else
        echo -1 >"$group/cpu.cfs_quota_us"
        echo "${1#* }" >"$group/cpu.cfs_period_us"
        echo "${1% *}" >"$group/cpu.cfs_quota_us"
    fi
}

# join GROUP "QUOTA PERIOD" COMMAND…: becomes a command in this group
join() {
    set -e
    mkdir -p $groups
    give "$2"
    for each in $groups; do echo $$ >"$each/cgroup.procs"; done
    shift 2
    exec "$@"
}

# online GROUP FILE: gives the group what its launch file asks for
online() {
    set -e
    give "$(sed -n 's/^max=//p' "$2")"
}

# show GROUP FILE PID_FILE: prints the launch file, and what the running server has of it
show() {
    cat -- "$2" 2>/dev/null
    pid=$(cat -- "$3" 2>/dev/null) && [ -d "/proc/$pid" ] || exit 0
    if ! grep -qx -- "$pid" "$group/cgroup.procs" 2>/dev/null; then
        echo now=
    elif [ -e "$group/cpu.max" ]; then
        echo "now=$(cat "$group/cpu.max")"
    else
        echo "now=$(cat "$group/cpu.cfs_quota_us") $(cat "$group/cpu.cfs_period_us")"
    fi
}

remove() {
    for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        left=
        for each in $groups; do
            [ ! -d "$each" ] || rmdir "$each" 2>/dev/null || left=$each
        done
        [ -n "$left" ] || exit 0
        sleep 0.1
    done
    echo "$left: control group in use by $(tr '\n' ' ' <"$left/cgroup.procs")" >&2
    exit 1
}

# Prints why no server can have a quota here.
refusal() {
    if [ ! -w "$root/cgroup.procs" ]; then
        echo "no control groups can be made in $root"
    elif [ ! -e "$root/cpu.cfs_quota_us" ] && ! grep -qw cpu "$root/cgroup.subtree_control"; then
        echo "$root/cgroup.subtree_control lacks cpu; \`echo +cpu >$root/cgroup.subtree_control\`"
    fi
}

shift
"$what" "$@"
