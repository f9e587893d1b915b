#!/usr/bin/env bash
# no-node.sh prints why the local cluster cannot run containers on this machine, if it cannot.
set -euo pipefail
if [[ $(uname) != Linux ]]; then
  echo "the local cluster's containers need Linux, and this is $(uname)"
elif [[ $(id -u) -ne 0 ]]; then
  echo "the local cluster's containers need root"
elif ! unshare --mount --net --pid --fork true 2>/dev/null; then
  echo "the local cluster's containers need namespaces of their own, which root may not create here (in a container: run it privileged)"
fi
