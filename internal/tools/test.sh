#!/usr/bin/env bash
# test.sh test runs the stages of `make test`, test.sh release those of `make test-release`, and
# test.sh STAGE... the given stages; STAGE@1.34 runs one on another version of Kubernetes. It runs all
# of them, even after a failure, and then prints their times and the failures. The output of a stage
# is in bin/test/STAGE.log.
#
# End-to-end tests run pods. If this machine cannot, they are left out, which is reported at the end
# and in bin/left-out; with CI=true it is a failure.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
rm -rf bin/left-out bin/test
mkdir -p bin/test
summary=()
failed=()

stage() {
  local name=$1 start=$SECONDS result=ok
  printf '\n=== %s\n' "$name"
  local target=("${name%@*}")
  [[ $name != *@* ]] || target+=("KUBERNETES_VERSION=${name#*@}")
  "${MAKE:-make}" --no-print-directory "${target[@]}" 2>&1 | tee "bin/test/$name.log" || { result=FAILED failed+=("$name"); }
  summary+=("$(printf '%-16s %-8s %5d s' "$name" "$result" $((SECONDS - start)))")
}

leave_out() {
  echo "$1: $2" >>bin/left-out
  summary+=("$(printf '%-16s %-8s' "$1" 'LEFT OUT')")
}

# Prints why the local cluster cannot run pods here, if it cannot.
no_node() {
  if [[ $(uname) != Linux ]]; then
    echo "the local cluster's node needs Linux, and this is $(uname)"
  elif [[ $(id -u) -ne 0 ]]; then
    echo "the local cluster's node needs root"
  fi
}

# The stages for every change, and the additional ones for a release.
test=(lint verify compatibility unit fuzz-short browser integration helm e2e)
release=(promtool sbom reproducible realworld certmanager crossplane velero integration-release integration@1.36 integration@1.35 integration@1.34 integration@1.33 integration@oldest helm@1.36 helm@1.35 helm@1.34 helm@1.33 helm@oldest e2e-release e2e@oldest soak-short fuzz)
# With RELEASE=true, these stages include the slow tests, so that release need not run them again.
[[ ${RELEASE:-} != true ]] || test=("${test[@]/#integration/integration-release}") test=("${test[@]/#e2e/e2e-release}")
case $* in
test) stages=("${test[@]}") ;;
release) stages=("${release[@]}") ;;
*) stages=("$@") ;;
esac

why=$(no_node)
for name in "${stages[@]}"; do
  case $name in
  # Other clusters run pods, but their processes cannot be killed.
  e2e | e2e@* | e2e-release) if [[ -z $why || ${CLUSTER:-local} != local ]]; then stage "$name"; else leave_out "$name" "$why"; fi ;;
  soak-short) if [[ -z $why ]]; then stage soak-short; else leave_out soak-short "$why"; fi ;;
  *) stage "$name" ;;
  esac
done

printf '\n=== summary%s\n' "${KUBERNETES_VERSION:+, on Kubernetes $KUBERNETES_VERSION}"
printf '%s\n' "${summary[@]}"
if [[ $* == test ]]; then
  # The line above release.Only has the name of the test.
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
  # Print the messages of failing tests, and the end of the log for other failures.
  grep -A 12 -E '^ *--- FAIL|^panic:|DATA RACE|\[(build|setup) failed\]' "bin/test/$name.log" | head -n 80
  echo '...'
  tail -n 8 "bin/test/$name.log"
done
[[ ${#failed[@]} -eq 0 ]]
