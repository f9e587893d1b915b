#!/usr/bin/env bash
# choose-cluster.sh prints where the demo runs when nobody says so: kind, where kind and
# kubectl are installed and a container engine answers, because that starts in seconds;
# otherwise local, which first builds Kubernetes. KUBERNETES_VERSION is about local.
set -euo pipefail

installed() { command -v "$1" >/dev/null; }
answers() { installed "$1" && timeout 10 "$1" info >/dev/null 2>&1; }

if [[ -z ${KUBERNETES_VERSION:-} ]] && installed kind && installed kubectl && { answers docker || answers podman; }; then
  echo "using kind; CLUSTER=local for the project's own cluster" >&2
  echo kind
else
  echo local
fi
