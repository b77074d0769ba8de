# The far end of an ssh:// host: one session, in one private folder, which ends with its lease.
#
# Every act has a number and a folder acts/NUMBER.  Making that folder is the beginning of the act:
# the first who makes it has decided, so that a `fetch` after a cut either finds the act, or makes
# sure that it never begins.  Replies stand between marks on stdout and stderr, the last of which
# carries a word: an exit code, or never, lost, over, missing, running.

umask 077 # as of commands here
S=${0%/*}
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH
do=$1 n=$2 d=$S/acts/$2

# Sets `start` to when process $1 began, in clock ticks since boot; fails if it is gone or dead.
since() {
    start=
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    set -- ${stat##*) }
    [ "$1" != Z ] && start=${20}
}

# Whether the process that file $1 names by id and start still lives; sets `pid`.
lives() {
    pid='' was=''
    { read -r pid was <"$1"; } 2>/dev/null && since "$pid" && [ "$start" = "$was" ]
}

# Ends the shell of file $1, which was here before us and may not know that nobody hears it: its
# group, but for the acts, which lead their own.
hang_up() {
    lives "$1" && [ "$pid" != $$ ] || return 0
    read -r stat <"/proc/$pid/stat" || return 0
    set -- ${stat##*) }
    kill -TERM "-$3" 2>/dev/null
}

end() {
    printf '\nmydyno %s %s\n' "$n" "$1" >&2
    exit 0
}

begin() {
    printf 'mydyno %s\n' "$n"
    printf 'mydyno %s\n' "$n" >&2
    read -r boot <"$S/boot"
    read -r now </proc/sys/kernel/random/boot_id
    [ "$boot" = "$now" ] && [ -d "$S/acts" ] || end over
}

result() {
    [ ! -s "$d/out" ] || cat "$d/out"
    [ ! -s "$d/err" ] || cat "$d/err" >&2
    read -r code <"$d/code"
    end "$code"
}

# Ends the group of act $1, which it leads; its id may be another's by now.  $2: seconds of grace.
stop() {
    [ ! -e "$1/stopped" ] || return 0 # its number may be anybody's since then
    if ! lives "$1/pid"; then
        : >"$1/stopped"
        [ -n "$pid" ] && [ ! -e "/proc/$pid" ] && kill -TERM "-$pid" 2>/dev/null || return 0
        sleep 0.2
        kill -KILL "-$pid" 2>/dev/null
        return 0
    fi
    kill -TERM "-$pid" 2>/dev/null
    left=$(($2 * 20))
    while lives "$1/pid" && [ "$left" -gt 0 ]; do
        sleep 0.05
        left=$((left - 1))
    done
    kill -KILL "-$pid" 2>/dev/null
    left=250 # five seconds: what waits for a hung disk must not keep the others from their end
    while lives "$1/pid" && [ "$left" -gt 0 ]; do
        sleep 0.02
        left=$((left - 1))
    done
    : >"$1/stopped"
}

# Ends the session: nothing begins any more, then what runs is ended, the youngest first.
close() {
    mv "$S/acts" "$S/over" 2>/dev/null || exit 0
    lives "$S/keeper" && [ "$pid" != $$ ] && kill -KILL "-$pid"
    hang_up "$S/line"
    for one in $(ls "$S/over" | sort -rn); do
        stop "$S/over/$one" 5
        hang_up "$S/over/$one/follower"
    done
    cd /
    left=100 # an answer that is just being given may put a file into it once more
    while rm -rf "$S" 2>/dev/null; [ -d "$S" ] && [ "$left" -gt 0 ]; do
        sleep 0.1
        left=$((left - 1))
    done
}

# answer FRAME IN DO N ARGS...: do what was ordered, then print the reply in one piece.
answer() {
    frame=$1 reply=$S/reply.$1 in=$2 order=$3 of=$4
    shift 4
    sh "$0" "$order" "$of" "$in" "$@" </dev/null >"$reply.out" 2>"$reply.err"
    code=$?
    [ "$in" = /dev/null ] || rm -f "$in"
    {
        flock 8
        set -- $(stat -c %s "$reply.out" "$reply.err")
        echo "$frame $code $1 $2"
        cat "$reply.out" "$reply.err"
    } 8>"$S/speak"
    rm -f "$reply.out" "$reply.err"
}

case $do in
open) # open LEASE OLD: make the session; OLD, an older one of ours, must be gone before
    lease=$2 old=$3
    left=200
    while [ -n "$old" ] && [ -d "$old" ] && [ "$left" -gt 0 ]; do
        sleep 0.1
        left=$((left - 1))
    done
    [ -z "$old" ] || [ ! -d "$old" ] || { echo "mydyno stuck $old"; rm -rf "$S"; exit; }
    missing=
    for tool in setsid setpriv flock install mktemp tail stat find; do
        command -v "$tool" >/dev/null || missing="$missing $tool"
    done
    [ -z "$missing" ] || { echo "mydyno missing$missing"; rm -rf "$S"; exit; }
    read -r boot </proc/sys/kernel/random/boot_id && echo "$boot" >"$S/boot"
    read -r up rest </proc/uptime && echo "${up%%.*}" >"$S/beat"
    mkdir "$S/files" "$S/acts"
    setsid sh "$0" keep "$lease" </dev/null >/dev/null 2>&1 &
    since $! && echo "$! $start" >"$S/keeper"
    exec sh "$0" line
    ;;
line) # The connection itself: frames of orders come in, replies go out; a line alone is a beat.
    n=line
    [ -d "$S/acts" ] && lives "$S/keeper" || { echo "mydyno over"; exit; }
    hang_up "$S/line"
    since $$ && echo "$$ $start" >"$S/line"
    run=/var/lib/mydyno # as for a mydyno that runs here, so that both exclude each other
    [ "$(id -u)" = 0 ] || run=${XDG_STATE_HOME:-$HOME/.local/state}/mydyno
    echo "mydyno line $S $run $SSH_CONNECTION"
    while read -r frame size bytes; do
        lives "$S/keeper" || exit
        read -r up rest </proc/uptime
        echo "${up%%.*}" >"$S/beat"
        [ -n "$size" ] || continue
        words=$(head -c "$size"; echo .)
        in=/dev/null
        if [ "$bytes" != 0 ]; then
            in=$S/in.$frame
            head -c "$bytes" >"$in"
            [ "$(stat -c %s "$in")" = "$bytes" ] || exit
        fi
        eval "set -- ${words%.}"
        answer "$frame" "$in" "$@" &
    done
    # Who can still be written to has closed the line, or died: a cut takes the pipes with it, and
    # then the lease decides.  A dead reader of stdout may be known of by now, of stderr not.
    sleep 0.5
    echo over >&2
    trap '' PIPE
    echo over
    close
    ;;
keep) # keep LEASE: end the session when no beat came for so many seconds
    lease=$2 seen=
    while sleep 2; do
        [ -d "$S/acts" ] || exit
        now=$(stat -c %s "$S"/in.* 2>/dev/null)
        [ "$now" = "$seen" ] || { # an upload that grows is a beat
            seen=$now
            read -r up rest </proc/uptime
            echo "${up%%.*}" >"$S/beat"
        }
        read -r beat <"$S/beat"
        read -r up rest </proc/uptime
        [ -n "$beat" ] || continue
        [ $((${up%%.*} - beat)) -lt "$lease" ] || break
    done
    close
    ;;
act | start) # act N IN FORGET ERR ARGV...: begin a command once; act waits for its end
    in=$3 forget=$4 err=$5
    shift 5
    begin
    for one in $forget; do rm -rf "$S/acts/$one"; done
    command -v -- "$1" >/dev/null || end missing
    setsid sh "$0" do "$n" "$in" "${err:-$d/err}" "$@" </dev/null >/dev/null 2>&1 &
    if [ "$do" = act ]; then
        wait $!
    else
        left=500
        while [ ! -s "$d/pid" ] && [ "$left" -gt 0 ]; do
            sleep 0.01
            left=$((left - 1))
        done
    fi
    [ -d "$S/acts" ] || end over
    [ ! -e "$d/fenced" ] || end never
    if [ "$do" = start ]; then
        [ -s "$d/pid" ] || end lost
        cat "$d/pid"
        end 0
    fi
    [ -s "$d/code" ] && result
    end lost
    ;;
do) # do N IN ERR ARGV...: the act itself, whatever becomes of who asked for it
    in=$3 err=$4
    shift 4
    mkdir "$d" || exit
    since $$ && echo "$$ $start" >"$d/by"
    setsid "$@" <"$in" >"$d/out" 2>>"$err" &
    since $!
    echo "$! $start" >"$d/pid"
    wait $!
    echo $? >"$d/code"
    ;;
fetch) # fetch N IN code|pid: what became of an act; one that has not begun never will
    what=$4
    begin
    mkdir "$d" 2>/dev/null && : >"$d/fenced" && end never
    [ ! -e "$d/fenced" ] || end never
    left=20
    until [ -s "$d/$what" ]; do
        if ! lives "$d/by"; then
            left=$((left - 1))
            [ "$left" -gt 0 ] || end lost
        fi
        [ -d "$S/acts" ] || end over
        sleep 0.1
    done
    [ "$what" = code ] && result
    cat "$d/pid"
    end 0
    ;;
halt) # halt N: an act that nobody waits for any more ends, or never begins
    begin
    mkdir "$d" 2>/dev/null && : >"$d/fenced" && end never
    left=100
    until [ -s "$d/pid" ] || [ -e "$d/fenced" ] || [ "$left" = 0 ]; do
        sleep 0.05
        left=$((left - 1))
    done
    stop "$d" 1
    end 0
    ;;
code) # code N: how a started command ended, or that it runs
    begin
    if [ ! -s "$d/code" ]; then
        ! lives "$d/by" || end running
        [ -s "$d/code" ] || end lost
    fi
    read -r code <"$d/code"
    end "$code"
    ;;
stop) # stop N IN GRACE: end a command and all it started
    begin
    stop "$d" "$4"
    while [ ! -s "$d/code" ] && lives "$d/by"; do sleep 0.02; done
    [ -s "$d/code" ] || end lost
    read -r code <"$d/code"
    end "$code"
    ;;
follow) # follow N AT: the output of a command from byte AT on, until it has ended
    begin
    since $$ && echo "$$ $start" >"$d/follower"
    if lives "$d/by"; then
        tail -c "+$3" -s 0.2 -f --pid="$pid" "$d/out" 2>/dev/null
    else
        tail -c "+$3" "$d/out"
    fi
    end done
    ;;
esac
