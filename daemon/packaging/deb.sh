#!/bin/sh
# A package for this machine's Debian and its Python: everything that install.sh puts somewhere, below /usr and /etc, in
# the form that Debian wants. VERSION names it, MAINTAINER who answers for it.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=/usr/bin/python3  # of the package that this one depends on: no other may run the programs
command -v dpkg-deb >/dev/null || { echo "there is no dpkg-deb; a package for Debian is made on Debian" >&2; exit 1; }
[ -x $python ] || { echo "there is no $python, the Python of Debian: apt install python3" >&2; exit 1; }
$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "groupsvc needs Python 3.11 or newer; that of this Debian is $($python -V)" >&2; exit 1; }

version=${VERSION:-$($python -c 'import sys, tomllib; print(tomllib.load(open(sys.argv[1], "rb"))["project"]["version"])' "$root/pyproject.toml")}
version=$(echo "$version" | sed 's/\.dev/~dev/')
architecture=$(dpkg --print-architecture)
stage=$root/build/deb
rm -rf "$stage"
mkdir -p "$stage/DEBIAN"
DESTDIR=$stage PREFIX=/usr PYTHON=$python ZSH=vendor-completions sh "$here/install.sh"

# --- As Debian wants it: one Python for all programs, papers in their place, nothing executable that is not executed.
for program in groupsvc groupsvcd; do sed -i "1s,.*,#!$python," "$stage/usr/bin/$program"; done
documents=$stage/usr/share/doc/groupsvc
rm "$documents/LICENSE"
install -m 644 "$here/debian/copyright" "$documents/copyright"
gzip -9nc "$root/CHANGELOG.md" >"$documents/changelog.gz"
find "$stage/usr/share/man" -name '*.[1-8]' -exec gzip -9n {} + 2>/dev/null || true  # if there are pages
find "$stage/usr/lib/groupsvc" -name '*.so*' -exec chmod 644 {} +

# --- What dpkg reads.
$python - "$here/debian/control" "$version" "$architecture" "${MAINTAINER:-groupsvc <groupsvc@localhost>}" >"$stage/DEBIAN/control" <<'END'
import sys

path, version, architecture, maintainer = sys.argv[1:]
has, less_than = ("%d.%d" % (3, sys.version_info.minor + more) for more in (0, 1))
text = open(path).read()
for name, value in {"VERSION": version, "ARCHITECTURE": architecture, "MAINTAINER": maintainer, "PYTHON": has, "NEXT": less_than}.items():
    text = text.replace(f"@{name}@", value)
print(text, end="")
END
echo /etc/groupsvc/groupsvcd.toml >"$stage/DEBIAN/conffiles"
for script in postinst prerm postrm; do install -m 755 "$here/debian/$script" "$stage/DEBIAN/$script"; done
(cd "$stage" && find usr -type f -exec md5sum {} +) >"$stage/DEBIAN/md5sums"
package=$root/build/groupsvc_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$stage" "$package" >/dev/null
rm -rf "$stage"
echo "$package"
