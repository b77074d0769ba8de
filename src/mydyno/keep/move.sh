#!/bin/sh
# move.sh run|after: a data directory goes to another folder; a unit of systemd runs it, not a session.
# `after` comes whatever has ended `run`: it goes on once the option file is written, or else goes back.
# `names`, beside it, holds unit, old, new, part, file, text, dropin, dropin_text.
# move.sh known UNIT FOLDER: succeeds if the server would be recognised by what `after` looks at.
set -eu
export LC_ALL=C
here=${0%/*}

state() {
    printf '%s\n' "$1" >"$here/state.part"
    mv -f "$here/state.part" "$here/state"
    logger -t mydyno-move -- "$old to $new: $1" || :
}

# Names, types, modes, owners and sizes of all of a folder, then the contents of its files.
listed() (
    cd "$1"
    find . \( -type d -printf '%y %m %U:%G 0 %p %l\0' \) -o -printf '%y %m %U:%G %s %p %l\0' | sort -z
    find . -type f -print0 | sort -z | xargs -0 -r sha256sum -z
)

# A server's working folder is its data directory.  Any process of the unit may be the server:
# systemd knows no main one of a script of SysV, and takes mysqld_safe, or a shell, for it.
runs_in() {
    group=$(systemctl show -p ControlGroup --value "$unit")
    [ -n "$group" ] || return 1
    for pid in $(find "/sys/fs/cgroup$group" "/sys/fs/cgroup/systemd$group" \
        -name cgroup.procs -exec cat {} + 2>/dev/null); do
        [ ! "/proc/$pid/cwd" -ef "$1" ] || return 0
    done
    return 1
}

# systemd waits for some units only: the server of another one takes a moment to get there.
arrives() {
    tries=100
    until runs_in "$new"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] && systemctl is-active --quiet "$unit" || return 1
        sleep 0.2
    done
}

# Replaces a file at once, with the modes that option files and units have.
written() {
    printf '%s' "$2" | install -m 644 /dev/stdin "$1.mydyno-new"
    sync -f "$1.mydyno-new"
    mv -f "$1.mydyno-new" "$1"
    sync -f "$(dirname "$1")"
}

# Puts option file and drop-in back as they were, durably: the server takes commits after it.
forget() {
    for one in file dropin; do
        eval "place=\$$one"
        rm -f "$place.mydyno-new"
        if cmp -s "$here/$one.before" "$place"; then
            continue # where /etc is full, not even the same text can be written
        elif [ -e "$here/$one.before" ]; then
            cp -p "$here/$one.before" "$place.mydyno-new"
            mv -f "$place.mydyno-new" "$place"
        elif [ -e "$here/begun" ]; then
            rm -f "$place"
        fi
    done
    rmdir --ignore-fail-on-non-empty "$(dirname "$dropin")" 2>/dev/null || :
    sync -f "$(dirname "$file")" /etc/systemd/system || :
    systemctl daemon-reload || : # refused, as where /run is full, it must not keep the server down
}

run() {
    for one in file dropin; do
        eval "place=\$$one"
        [ ! -e "$place" ] || cp -p "$place" "$here/$one.before"
    done
    touch "$here/begun"
    state stopping
    if ! runs_in "$old"; then # it has moved since it was looked at: this folder is not its data any more
        echo "$unit: no process of it works in $old" >&2
        exit 1
    fi
    systemctl stop "$unit"
    if runs_in "$old"; then # a script of SysV may leave the server running
        echo "$unit: is stopped, but a process of it works in $old" >&2
        exit 1
    fi
    state copying
    rm -rf --one-file-system "$part"
    cp -a --sparse=auto -T "$old" "$part"
    sync -f "$part"
    state comparing
    listed "$old" >"$here/old"
    listed "$part" >"$here/new"
    cmp "$here/old" "$here/new"
    stat -c %d:%i "$part" >"$here/inode"
    state switching
    mv -n -T "$part" "$new"
    [ ! -e "$part" ]
    sync -f "$new" # before any file names it
    mkdir -p "$(dirname "$dropin")"
    written "$dropin" "$dropin_text"
    written "$file" "$text"
}

after() {
    case $(cat "$here/state" 2>/dev/null || echo nothing) in
    nothing | moved | refused | down | restored) exit 0 ;;
    esac
    rm -f "$here/old" "$here/new" # they may have filled /run
    if grep -qxF "datadir = $new" "$file" 2>/dev/null; then
        state starting
        systemctl daemon-reload || :
        if systemctl start "$unit" && arrives; then
            state moved
            exit 0
        fi
        # it may have taken a commit there: the copy stays
        systemctl stop "$unit" || :
        rm -f "$here/inode" # of a copy that nothing has used: this one is not removed by a second `after`
        forget
        systemctl start "$unit" && state refused || state down
        exit 0
    fi
    rm -rf --one-file-system "$part"
    if [ -e "$here/inode" ] && [ "$(stat -c %d:%i "$new" 2>/dev/null)" = "$(cat "$here/inode")" ]; then
        rm -rf --one-file-system "$new"
    fi
    forget
    systemctl start "$unit" && state restored || state down
}

if [ "$1" = known ]; then
    unit=$2
    runs_in "$3"
    exit
fi
. "$here/names"
# Killed, it is started again, and then only ends what was begun.
if [ "$1" = run ] && [ -e "$here/state" ]; then
    set -- after
fi
"$1"
