#!/usr/bin/env bash
# previous.sh REVISION COMMAND... uses files of another revision of this repository.
#
#   previous.sh REVISION crds        copy its CustomResourceDefinitions to bin/previous/crds
#   previous.sh REVISION install IMG ARCH
#                                    build its image IMG as bin/previous.tar with its own
#                                    Makefile, and copy its config/ to bin/previous/config
set -euo pipefail
cd "$(dirname "$0")/../.."
revision=$1
shift

if [[ $(git rev-parse --is-shallow-repository) == true ]]; then
  git fetch --quiet --deepen=1 || true # what is still missing is told below
fi
if ! commit=$(git rev-parse --verify --quiet "$revision^{commit}"); then
  cat >&2 <<BLOCK
error: there is no revision $revision here, and upgrades from it cannot be tested.
A shallow clone lacks it: git fetch --unshallow, or clone with a depth of 2 at least.
Or name a revision that is here: make ... PREVIOUS=v1.0.0
BLOCK
  exit 1
fi

crds() {
  rm -rf bin/previous/crds
  mkdir -p bin/previous/crds
  git archive "$commit" config/crd/bases | tar -x --strip-components=3 -C bin/previous/crds
}

# Outside of the tree, so that its packages and pages do not count as ours.
install() {
  local img=$1 arch=$2 tree
  tree=$(mktemp -d)
  # shellcheck disable=SC2064 # the folder that it is now
  trap "rm -rf '$tree'" EXIT
  git archive "$commit" | tar -x -C "$tree"
  echo "building the image $img of $revision, $(git log -1 --format='%h %s' "$commit")"
  make -C "$tree" image IMG="$img" ARCH="$arch" VERSION="previous-${commit:0:12}" REVISION="$commit"
  rm -rf bin/previous/config
  mkdir -p bin/previous
  cp -R "$tree/config" bin/previous/config
  mv "$tree/bin/image.tar" bin/previous.tar
}

"$@"
