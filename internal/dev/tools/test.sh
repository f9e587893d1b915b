#!/usr/bin/env bash
# test.sh ci runs the stages of continuous integration, test.sh release those of `make test-release`, and
# test.sh STAGE... the given stages; STAGE@1.34 runs one on another version of Kubernetes. It runs all
# of them, even after a failure, and then prints their times, with those of processors as far as the stage waits for
# its programs, and the failures. The output of a stage is in bin/test/STAGE.log.
#
# Stages run side by side, in lanes: those that run pods, those that run API servers, and all others. The
# first two mostly wait, so that the others take the processors they leave. A stage must not write a file
# that another lane reads.
#
# End-to-end tests run pods. If this machine cannot, they are left out, which is reported at the start and
# at the end, and in bin/left-out; with CI=true it is a failure.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit
rm -rf bin/left-out bin/test
mkdir -p bin/test
touch bin/test/summary

stage() {
  local name=$1 start=$SECONDS result=ok user system TIMEFORMAT='%U %S'
  local target=("${name%@*}")
  [[ $name != *@* ]] || target+=("KUBERNETES_VERSION=${name#*@}")
  printf '=== %s\n' "$name"
  { time "${MAKE:-make}" --no-print-directory "${target[@]}" 2>&1 </dev/null; } 2>"bin/test/$name.times" | tee "bin/test/$name.log" | while IFS= read -r line; do
    printf '%s: %s\n' "$name" "$line"
  done || result=FAILED
  read -r user system < <(tail -n 1 "bin/test/$name.times") # after what bash says of a program that was killed
  printf '%-16s %-8s %5d s, %5d s of a processor\n' "$name" "$result" $((SECONDS - start)) $((${user%.*} + ${system%.*})) >>bin/test/summary
  printf '=== %s %s after %d s\n' "$name" "$result" $((SECONDS - start))
}

leave_out() {
  echo "$1: $2" >>bin/left-out
  printf '%-16s %-8s\n' "$1" 'LEFT OUT' >>bin/test/summary
}

# Prints the lane of a stage. compile fills the build cache, so that no two lanes compile the same
# package at the same time. Fuzzers run after all others, on an idle machine: Go ends one whose input
# takes ten seconds, and fuzz runs for a time.
lane() {
  case ${1%@*} in
  compile | verify) echo first ;;
  test-e2e | test-e2e-release | soak-short) echo pods ;;
  test | integration | integration-release | helm | certmanager | crossplane | velero) echo servers ;;
  fuzz | fuzz-short) echo last ;;
  *) echo others ;;
  esac
}

# Runs the stages of a lane, one after the other.
run() {
  local name
  for name in "${stages[@]}"; do
    [[ $(lane "$name") != "$1" ]] || stage "$name"
  done
}

ci=(compile verify test lint test-modules helm browser fuzz-short test-e2e)
release=(promtool sbom reproducible realworld certmanager crossplane velero integration-release integration@1.36 integration@1.35 integration@1.34 integration@1.33 integration@oldest helm@1.36 helm@1.35 helm@1.34 helm@1.33 helm@oldest test-e2e-release test-e2e@oldest soak-short fuzz)
case $* in
ci) chosen=("${ci[@]}") ;;
release) chosen=("${release[@]}") ;;
*) chosen=("$@") ;;
esac

export PARALLEL=2 # the other lanes use the processors, too
why=$(internal/dev/tools/no-node.sh)
stages=()
for name in "${chosen[@]}"; do
  case $name in
  test-e2e | test-e2e@* | test-e2e-release) if [[ -z $why || ${CLUSTER:-local} != local ]]; then stages+=("$name"); else leave_out "$name" "$why"; fi ;;
  *) stages+=("$name") ;;
  esac
done
[[ ! -e bin/left-out ]] || printf 'left out: %s\n' "$(<bin/left-out)"

run first
# With job control, each lane is a process group: it is interrupted as a whole, and its programs do
# not ignore interrupts, which some tests send.
set -m
lanes=()
for lane in pods servers others; do
  {
    case $lane in servers) renice -n 10 -p "$BASHPID" >/dev/null ;; others) renice -n 15 -p "$BASHPID" >/dev/null ;; esac
    run "$lane"
  } &
  lanes+=($!)
done
set +m
trap 'kill -- "${lanes[@]/#/-}" 2>/dev/null; exit 130' INT TERM
wait "${lanes[@]}"
trap - INT TERM
run last

failed=()
for name in "${stages[@]}"; do
  grep -qE "^$name +ok " bin/test/summary || failed+=("$name")
done
printf '\n=== summary%s\n' "${KUBERNETES_VERSION:+, on Kubernetes $KUBERNETES_VERSION}"
cat bin/test/summary
if [[ -s bin/left-out ]]; then
  cat <<BLOCK

  ####################################################################
  ##  LEFT OUT: this was not the whole test.
$(sed 's/^/  ##  /' bin/left-out)
  ##  Run it as root on Linux, or on a cluster of yours:
  ##  add CLUSTER=kind, or CLUSTER=current
  ####################################################################
BLOCK
fi
for name in "${failed[@]}"; do
  printf '\n=== failed: %s\n' "$name"
  [[ -e bin/test/$name.log ]] || { echo 'it did not run' && continue; }
  # Print the messages of failing tests, and the end of the log for other failures.
  grep -A 12 -E '^ *--- FAIL|^panic:|DATA RACE|\[(build|setup) failed\]' "bin/test/$name.log" | head -n 80
  echo '...'
  tail -n 8 "bin/test/$name.log"
done
[[ ${#failed[@]} -eq 0 && (${CI:-} != true || ! -e bin/left-out) ]]
