#!/bin/sh
# Puts the daemon, its unit and everything around it into a system, or below DESTDIR for who makes a package of it.
#
#   PREFIX      where programs go (default /usr/local)          SYSCONFDIR  where the configuration goes (default /etc)
#   DESTDIR     put before every path (default: nothing)        PYTHON      what runs the programs (default: python3);
#                                                                           what they need is got for it
#   PIP         gets what they need; "none": it is there        MAN         pages, if there are any (default build/man)
#   ZSH         where zsh looks, below PREFIX/share/zsh (default: site-functions)
#
# A configuration that is there already stays as it is.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
prefix=${PREFIX:-/usr/local}
sysconfdir=${SYSCONFDIR:-/etc}
to=${DESTDIR:-}
python=$("${PYTHON:-python3}" -c 'import sys; print(sys.executable)')  # and not what only points to it
pip=${PIP:-"$python -m pip"}
man=${MAN:-$root/build/man}
library=$prefix/lib/groupsvc

case $to$python in
/root/* | /home/* | /run/user/*)
    echo "install.sh: the unit lets the daemon see no home directories, so it cannot be run by $python." >&2
    echo "Take the Python of the system: make install PYTHON=/usr/bin/python3" >&2
    exit 1 ;;
esac

put() { # put MODE FILE PATH
    install -D -m "$1" "$2" "$to$3"
}

# --- The programs, in a directory of their own: they change nothing of the system's Python.
rm -rf "$to$library"
mkdir -p "$to$library" "$to$prefix/bin"
cp -RL "$root/groupsvc" "$root/daemon/groupsvcd" "$to$library"
find "$to$library" -name __pycache__ -type d -prune -exec rm -rf {} +
if [ "$pip" != none ]; then
    "$python" -c 'import sys, tomllib; print("\n".join(tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"]))' \
        "$root/pyproject.toml" >"$to$library/requirements.txt"
    $pip --python "$python" install --quiet --disable-pip-version-check --no-compile --target "$to$library" \
        -r "$to$library/requirements.txt"
    rm "$to$library/requirements.txt"
fi
for program in groupsvc:groupsvc.cli groupsvcd:groupsvcd.__main__; do
    name=${program%%:*}
    cat >"$to$prefix/bin/$name" <<END
#!$python
import sys

sys.path.insert(0, "$library")
from ${program#*:} import main

sys.exit(main())
END
    chmod 755 "$to$prefix/bin/$name"
done

# --- What systemd reads.
sed "s#/usr/bin/groupsvcd#$prefix/bin/groupsvcd#; s#/etc/groupsvc/#$sysconfdir/groupsvc/#" \
    "$root/daemon/systemd/groupsvcd.service" >"$to$library/groupsvcd.service"
put 644 "$to$library/groupsvcd.service" "$prefix/lib/systemd/system/groupsvcd.service"
rm "$to$library/groupsvcd.service"
put 644 "$root/daemon/systemd/groupsvc.sysusers" "$prefix/lib/sysusers.d/groupsvc.conf"
put 644 "$root/daemon/systemd/groupsvc.tmpfiles" "$prefix/lib/tmpfiles.d/groupsvc.conf"

# --- The configuration: as the unit wants it, everything else as by default.
put 644 "$root/daemon/config/groupsvcd.example.toml" "$prefix/share/doc/groupsvc/groupsvcd.example.toml"
put 644 "$root/LICENSE" "$prefix/share/doc/groupsvc/LICENSE"
if [ ! -e "$to$sysconfdir/groupsvc/groupsvcd.toml" ]; then
    mkdir -p "$to$sysconfdir/groupsvc"
    sed 's,^#\(state_directory = \),\1,; s,^#\(journal_directory = \),\1,' "$root/daemon/config/groupsvcd.example.toml" \
        >"$to$sysconfdir/groupsvc/groupsvcd.toml"
    chmod 644 "$to$sysconfdir/groupsvc/groupsvcd.toml"
fi

# --- Pages for man, and what shells complete, if they were made.
for page in "$man"/man[1-8]/*.[1-8]; do
    if [ -e "$page" ]; then put 644 "$page" "$prefix/share/man/man${page##*.}/$(basename "$page")"; fi
done
complete() { # complete SHELL PATH
    if PYTHONPATH="$to$library${PYTHONPATH:+:$PYTHONPATH}" "$python" -B -m groupsvc.cli completion "$1" >"$to$library/completion" 2>/dev/null
    then put 644 "$to$library/completion" "$2"; fi
    rm -f "$to$library/completion"
}
complete bash "$prefix/share/bash-completion/completions/groupsvc"
complete zsh "$prefix/share/zsh/${ZSH:-site-functions}/_groupsvc"
complete fish "$prefix/share/fish/vendor_completions.d/groupsvc.fish"

if [ -z "$to" ]; then
    "$python" -m compileall -q "$library"  # the user of the daemon cannot write there, and would compile at every start
    echo "installed below $prefix. Then: systemd-sysusers; systemd-tmpfiles --create; systemctl daemon-reload;"
    echo "write $sysconfdir/groupsvc/groupsvcd.toml; systemctl enable --now groupsvcd"
fi
