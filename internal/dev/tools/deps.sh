#!/usr/bin/env bash
# deps.sh THING... installs the missing ones of the named programs, as root with apt-get. Otherwise
# it lists all of them in one error. The thing image-builder is buildah, podman or docker; chromium
# is that browser under any of its names, and node is a machine on which the local cluster can run
# containers, which nothing installs.
#
# If nothing is missing, it prints nothing.
set -euo pipefail
here=$(dirname "$0")

# The Debian packages of programs.
declare -A package=([runc]=runc [ip]=iproute2 [image-builder]=buildah [chromium]=chromium-headless-shell [jq]=jq [npm]=npm)

present() {
  case $1 in
  image-builder) "$here/image.sh" builder >/dev/null ;;
  chromium) command -v chromium-headless-shell chromium chromium-browser google-chrome >/dev/null ;;
  *) command -v "$1" >/dev/null ;;
  esac
}

if [[ ${1:-} == node ]]; then
  shift
  why=$("$here/no-node.sh")
  if [[ -n $why ]]; then
    echo "error: $why; nodes of processes need none of this: make demo NODE=processes, and make test, which leaves out only the tests in real pods; or use another cluster, with CLUSTER=kind or CLUSTER=current" >&2
    exit 1
  fi
fi

missing=() packages=()
for thing in "$@"; do
  present "$thing" && continue
  missing+=("$thing")
  [[ -z ${package[$thing]:-} ]] || packages+=("${package[$thing]}")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

# Every missing program has a package, and this user can install packages.
if [[ ${#packages[@]} -eq ${#missing[@]} && $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
  echo "installing ${packages[*]} with apt-get"
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  # Stages of make test that run side by side can both need something.
  # shellcheck disable=SC2016 # the inner bash expands it
  if flock --close /tmp/conversion-operator-apt.lock bash -c 'apt-get update && apt-get install --yes --no-install-recommends "$@"' \
    apt "${packages[@]}" >"$log" 2>&1; then
    rm -f "$log"
    exit 0
  fi
  cat "$log" >&2
  echo "error: apt-get could not install ${packages[*]}; its output is above" >&2
  exit 1
fi

{
  echo "error: missing: ${missing[*]/image-builder/an image builder (buildah, podman or docker)}"
  [[ ${#packages[@]} -eq 0 ]] || echo "Install them with the system's package manager, for example: sudo apt-get install ${packages[*]}"
  [[ ${#packages[@]} -eq ${#missing[@]} ]] || echo "kind and kubectl: https://kind.sigs.k8s.io and https://kubernetes.io/docs/tasks/tools"
} >&2
exit 1
