#!/usr/bin/env bash
# test.sh test runs everything that `make test` promises, test.sh release what
# `make test-release` does, and test.sh STAGE... these stages: one after the other,
# all of them even when one fails, and at the end what each took, and what failed
# once more. What a stage printed is in bin/test/STAGE.log.
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
  summary+=("$(printf '%-13s %-8s %5d s' "$name" "$result" $((SECONDS - start)))")
}

leave_out() {
  echo "$1: $2" >>bin/left-out
  summary+=("$(printf '%-13s %-8s' "$1" 'LEFT OUT')")
}

# Why the local cluster's pods cannot run here, or nothing.
no_node() {
  if [[ $(uname) != Linux ]]; then
    echo "the local cluster's node needs Linux, and this is $(uname)"
  elif [[ $(id -u) -ne 0 ]]; then
    echo "the local cluster's node needs root"
  fi
}

# What every change has to pass, and what a release has to pass besides.
test=(lint verify compatibility unit fuzz-short browser integration e2e)
release=(promtool sbom reproducible realworld certmanager integration-release e2e-release soak-short fuzz)
# RELEASE=true plays in these stages what takes long, so that release need not again.
[[ ${RELEASE:-} != true ]] || test=("${test[@]/#integration/integration-release}") test=("${test[@]/#e2e/e2e-release}")
case $* in
test) stages=("${test[@]}") ;;
release) stages=("${release[@]}") ;;
*) stages=("$@") ;;
esac

why=$(no_node)
for name in "${stages[@]}"; do
  case $name in
  # A cluster that is not ours has pods wherever it is, but its processes are not ours to kill.
  e2e | e2e-release) if [[ -z $why || ${CLUSTER:-local} != local ]]; then stage "$name"; else leave_out "$name" "$why"; fi ;;
  soak-short) if [[ -z $why ]]; then stage soak-short; else leave_out soak-short "$why"; fi ;;
  *) stage "$name" ;;
  esac
done

printf '\n=== summary%s\n' "${KUBERNETES_VERSION:+, on Kubernetes $KUBERNETES_VERSION}"
printf '%s\n' "${summary[@]}"
if [[ $* == test ]]; then
  # The line above release.Only is the name of the test.
  stories=$(grep -h -B 1 'release.Only(t, ' internal/test/e2e/*_test.go | sed -n 's/^func \(Test[A-Za-z0-9]*\)(.*/\1/p')
  printf '\nBefore a release, make test-release runs:\n'
  fmt -w 78 <<<"${release[*]}" | sed 's/^/  /'
  printf 'Of these, e2e-release plays the stories of e2e, and\n'
  tr '\n' ' ' <<<"$stories" | fmt -w 78 | sed 's/^/  /'
fi
if [[ -s bin/left-out ]]; then
  cat <<BLOCK

  ####################################################################
  ##  LEFT OUT: this was not the whole test.
$(sed 's/^/  ##  /' bin/left-out)
  ##  Run it as root on Linux, or on a cluster of yours:
  ##  add CLUSTER=kind, or CLUSTER=current
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
