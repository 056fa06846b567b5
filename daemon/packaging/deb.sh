#!/bin/sh
# A package for this machine's Debian: everything that install.sh puts somewhere, below /usr and /etc. VERSION names it.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
command -v dpkg-deb >/dev/null || { echo "there is no dpkg-deb; a package for Debian is made on Debian" >&2; exit 1; }
python=$(command -v "${PYTHON:-python3}")
version=${VERSION:-$("$python" -c 'import sys, tomllib; print(tomllib.load(open(sys.argv[1], "rb"))["project"]["version"])' "$root/pyproject.toml")}
architecture=$(dpkg --print-architecture)
stage=$root/build/deb
rm -rf "$stage"
mkdir -p "$stage/DEBIAN"
DESTDIR=$stage PREFIX=/usr PYTHON=$python sh "$here/install.sh"
sed "s/@VERSION@/$(echo "$version" | sed 's/\.dev/~dev/')/; s/@ARCHITECTURE@/$architecture/; s/@PYTHON@/$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')/" \
    "$here/debian/control" >"$stage/DEBIAN/control"
echo /etc/groupsvc/groupsvcd.toml >"$stage/DEBIAN/conffiles"
for script in postinst prerm postrm; do install -m 755 "$here/debian/$script" "$stage/DEBIAN/$script"; done
package=$root/build/groupsvc_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$stage" "$package" >/dev/null
rm -rf "$stage"
echo "$package"
