#!/bin/sh
# Install the services of the comparison, $PACKAGES, without letting any of them start: the bench starts its own.
# A policy-rc.d that is there already is left alone; ours is taken away again. What is installed here does not start
# with the machine either. One package after the other: where one does not exist the others are installed all the same,
# and the bench says which one it misses.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
get() { apt-get -o DPkg::Lock::Timeout=300 install --yes --quiet --no-install-recommends "$1" >/dev/null 2>&1; }
is_there() { dpkg-query --show --showformat='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
for package in $PACKAGES; do
    is_there "$package" && continue
    get "$package" || { apt-get update --quiet >/dev/null 2>&1 && get "$package"; } || {
        echo "the package $package cannot be installed" >&2
        continue
    }
    case $package in
    etcd-server) service=etcd ;;
    *) service=$package ;;
    esac
    systemctl disable --quiet "$service" 2>/dev/null
done
