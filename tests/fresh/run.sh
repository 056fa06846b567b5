#!/bin/sh
# The two commands of the README on a fresh machine: Debian from its packages into a directory, Python and make and
# nothing else, empty caches. Needs root, debootstrap and 3 GB of disk.
#
#   tests/fresh/run.sh [DIRECTORY [COMMAND]]      the default command is: make demo && make test
#
# What this machine knows about proxies, certificates and package indexes is told to the fresh one.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
fresh=${1:-$root/build/fresh}
command=${2:-make demo && make test}
mirror=${MIRROR:-}  # that of debootstrap

[ "$(id -u)" = 0 ] || { echo "run.sh: chroot and mount need root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "run.sh: there is no debootstrap: apt install debootstrap" >&2; exit 2; }

if [ ! -x "$fresh/usr/bin/python3" ]; then
    mkdir -p "$fresh"
    # shellcheck disable=SC2086  # no word if there is no mirror
    debootstrap --variant=minbase --include=python3,python3-venv,make,git,ca-certificates bookworm "$fresh" $mirror >"$fresh.log" ||
        { tail "$fresh.log" >&2; exit 1; }
fi

undo() {
    for directory in dev proc; do
        ! mountpoint --quiet "$fresh/$directory" || umount --recursive "$fresh/$directory"
    done
}
trap undo EXIT
trap 'exit 130' INT TERM
undo  # what a run that was killed has left
mount -t proc proc "$fresh/proc"
mount --rbind /dev "$fresh/dev" && mount --make-rslave "$fresh/dev"
for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
    [ ! -e "$file" ] || cp -L "$file" "$fresh$file"
done

rm -rf "$fresh/groupsvc"
git clone --quiet --no-hardlinks "$root" "$fresh/groupsvc"
settings=$(env | grep -E '^(https?_proxy|HTTPS?_PROXY|no_proxy|PIP_[A-Z_]*|SSL_CERT_FILE)=' || true)
# shellcheck disable=SC2086  # one word for each setting
exec_in() { chroot "$fresh" env -i HOME=/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 $settings "$@"; }
exec_in sh -c "cd /groupsvc && $command"
