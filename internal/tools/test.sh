#!/usr/bin/env bash
# test.sh [STAGE...] runs everything that `make test` promises, or these stages of
# it, one after the other, all of them even when one fails, and at the end what
# each took, and what failed once more. What a stage printed is in
# bin/test/STAGE.log.
#
# End-to-end tests run pods. Where that is not possible they are left out, which
# is said loudly and written to bin/left-out; with CI=true it is a failure.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
rm -rf bin/left-out bin/test
mkdir -p bin/test
summary=()
failed=()

stage() {
  local name=$1 start=$SECONDS result=ok
  printf '\n=== %s\n' "$name"
  "${MAKE:-make}" --no-print-directory "$name" 2>&1 | tee "bin/test/$name.log" || { result=FAILED failed+=("$name"); }
  summary+=("$(printf '%-12s %-8s %5d s' "$name" "$result" $((SECONDS - start)))")
}

leave_out() {
  echo "$1: $2" >>bin/left-out
  summary+=("$(printf '%-12s %-8s' "$1" 'LEFT OUT')")
}

# Why the local cluster's pods cannot run here, or nothing.
no_node() {
  if [[ $(uname) != Linux ]]; then
    echo "the local cluster's node needs Linux, and this is $(uname)"
  elif [[ $(id -u) -ne 0 ]]; then
    echo "the local cluster's node needs root"
  fi
}

stages=("$@")
[[ $# -gt 0 ]] || stages=(lint verify compatibility unit promtool sbom reproducible fuzz-short browser realworld integration e2e soak-short)
why=$(no_node)
for name in "${stages[@]}"; do
  case $name in
  # A cluster that is not ours has pods wherever it is, but its processes are not ours to kill.
  e2e) if [[ -z $why || ${CLUSTER:-local} != local ]]; then stage e2e; else leave_out e2e "$why"; fi ;;
  soak-short) if [[ -z $why ]]; then stage soak-short; else leave_out soak-short "$why"; fi ;;
  *) stage "$name" ;;
  esac
done

printf '\n=== summary%s\n' "${KUBERNETES_VERSION:+, on Kubernetes $KUBERNETES_VERSION}"
printf '%s\n' "${summary[@]}"
if [[ -s bin/left-out ]]; then
  cat <<BLOCK

  ####################################################################
  ##  LEFT OUT: this was not the whole test.
$(sed 's/^/  ##  /' bin/left-out)
  ##  Run it as root on Linux, or on a cluster of yours:
  ##  make test CLUSTER=kind, or make test CLUSTER=current
  ####################################################################
BLOCK
  [[ ${CI:-} != true ]] || failed+=(left-out)
fi
for name in "${failed[@]}"; do
  [[ -e bin/test/$name.log ]] || continue
  printf '\n=== failed: %s\n' "$name"
  # What a failing test says is behind its name; what else ends a stage is at its end.
  grep -A 12 -E '^ *--- FAIL|^panic:|DATA RACE|\[(build|setup) failed\]' "bin/test/$name.log" | head -n 80
  echo '...'
  tail -n 8 "bin/test/$name.log"
done
[[ ${#failed[@]} -eq 0 ]]
