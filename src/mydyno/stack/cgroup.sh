# cgroup.sh join|online|show|remove|refusal GROUP …: the control group of a private server.  Where systemd
# runs, it is a scope: systemd alone decides which controllers a group has, and removes it.  Elsewhere it
# is a folder in the tree of version 1 that has `cpu`, else in that of version 2.
what=$1
for root in /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/cpu /sys/fs/cgroup; do
    [ -e "$root/cgroup.procs" ] && break
done
# what counts CPU time may be in a tree apart
group=$root/$2 groups=$root/$2 apart=/sys/fs/cgroup/cpuacct
[ -e "$apart/cgroup.procs" ] && [ ! -L "$apart" ] && groups="$group $apart/$2"
[ -d /run/systemd/system ] && scope=$2.scope || scope=

# Prints "QUOTA PERIOD" in microseconds as systemd takes it: in hundredths of a per cent, rounded down.
# Older ones know neither decimals nor periods: both are left out where they say nothing.
properties() {
    share=$(((${1% *} * 10000 + ${1#* } - 1) / ${1#* }))
    printf 'CPUQuota=%d' $((share / 100))
    [ $((share % 100)) = 0 ] || printf '.%02d' $((share % 100))
    printf '%%'
    [ "${1#* }" = 100000 ] || printf ' CPUQuotaPeriodSec=%dus' "${1#* }"
}

# Gives the group its quota; version 1 refuses one of the two that does not go with the other.
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
    if [ -n "$scope" ]; then
        limits=
        for one in $(properties "$2"); do limits="$limits --property=$one"; done
        shift 2
        systemctl stop "$scope" 2>/dev/null || : # the one before may not be collected yet
        exec systemd-run --quiet --scope --collect --unit="$scope" $limits -- "$@"
    fi
    mkdir -p $groups
    give "$2"
    for each in $groups; do echo $$ >"$each/cgroup.procs"; done
    shift 2
    exec "$@"
}

# online GROUP FILE: gives the group what its launch file asks for
online() {
    set -e
    quota=$(sed -n 's/^max=//p' "$2")
    if [ -n "$scope" ]; then
        both=$(properties "$quota")
        # one of another length that was given before is taken away
        case $both:$(systemctl show --property=CPUQuotaPeriodUSec "$scope") in
        *Period*:* | *: | *=infinity | *=100ms) ;;
        *) both="$both CPUQuotaPeriodSec=" ;;
        esac
        exec systemctl set-property --runtime "$scope" $both
    fi
    give "$quota"
}

# show GROUP FILE PID_FILE: prints the launch file, and what the running server has of it
show() {
    cat -- "$2" 2>/dev/null
    pid=$(cat -- "$3" 2>/dev/null) && [ -d "/proc/$pid" ] || exit 0
    there=$root$(sed -n 's/^[0-9]*:\([^:]*,\)*cpu\(,[^:]*\)*://p' "/proc/$pid/cgroup")
    [ "$root" != /sys/fs/cgroup ] || there=$root$(sed -n 's/^0:://p' "/proc/$pid/cgroup")
    case $there in
    */"$1" | */"$1.scope") [ -n "$scope" ] && cd "$there" || cd "$group" ;;
    *) echo now= && exit ;;
    esac
    if [ -e cpu.max ]; then
        echo "now=$(cat cpu.max)"
    else
        echo "now=$(cat cpu.cfs_quota_us cpu.cfs_period_us 2>/dev/null | tr '\n' ' ')"
    fi
}

remove() {
    [ -z "$scope" ] || exit 0 # it ends with its last process
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
    if [ -n "$scope" ]; then
        [ "$(id -u)" = 0 ] || echo "systemd makes control groups for root; run as root"
    elif [ ! -w "$root/cgroup.procs" ]; then
        echo "no control groups can be made in $root; run as root, or on a host whose groups are writable"
    elif [ ! -e "$root/cpu.cfs_quota_us" ] && ! grep -qw cpu "$root/cgroup.subtree_control"; then
        echo "$root/cgroup.subtree_control lacks cpu; write +cpu into it, in a container after its" \
            "processes have moved into a group below"
    fi
}

shift
"$what" "$@"
