#!/bin/sh
# A rolling restart: run this on all nodes at once. They meet, restart their service one after the other, and meet again.
#
#   rolling_restart.sh web1 web1,web2,web3 -- systemctl restart nginx
#
# If one of them does not come, nobody begins, and each is told who is missing. If one of them fails to restart, it does
# not come to the second meeting, and the others are told so.
set -eu

me=$1
all=$2
shift 3

# What meet prints is of no use here; what it complains of is.
meet() {
    groupsvc barrier "rolling-restart/$1" --expect "$all" --as "$me" --timeout "${MEET_S:-60}" > /dev/null
}

meet begin
echo "$me: all are here"
groupsvc lock rolling-restart -- sh -c 'echo "$0: restarts"; "$@" && echo "$0: serves again"' "$me" "$@"
meet end
echo "$me: all serve again"
