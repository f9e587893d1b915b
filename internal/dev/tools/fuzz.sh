#!/usr/bin/env bash
# Runs every fuzzer of the tree, one after the other, and continues after failures:
#
#   fuzz.sh 30s [regexp]   each for that time; bin/fuzz keeps new inputs for the next run
#   fuzz.sh short          each with a fixed number of inputs, so that a busy machine only
#                          takes longer: the laws of conversion in 250 worlds, which is
#                          1,000 objects, in which each law must compare something; all
#                          others with 2,000 inputs, or 200 if one is slow
#
# A failing input is written to testdata/fuzz of the package. After the fix, commit that file, so
# that `go test` tries it again.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit
time=${1:-30s} only=${2:-.}
mkdir -p bin/fuzz
# A fuzzer that is interrupted reports success, so that the next one would start.
trap 'exit 130' INT TERM

# Tests the laws with new worlds, and prints how many.
test_laws() {
  local log=bin/fuzz/laws.log
  # No time limit: on a busy machine, -for would end a law after fewer worlds.
  if GOGC=400 go test ./internal/engine/conversion -count=1 -timeout 0 -for 24h -v -run "^(${laws//$'\n'/|})\$" -first 1000 -seeds 250 >"$log" 2>&1; then
    grep -o 'Fuzz[A-Za-z]* ([0-9.s]*)\|[0-9]* worlds, [0-9]* steps' "$log" | paste -d ' ' - -
    return
  fi
  grep -A 40 -e '--- FAIL: .*/' "$log" | head -c 8000
  printf '\nFAILED: a law of conversion. The output is in %s\n' "$log"
  return 1
}

# "package fuzzer", one per line.
fuzzers=$(grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' internal |
  sed -E 's|^(.*)/[^/]*_test\.go:func (.*)$|\1 \2|' | grep -E " [A-Za-z0-9]*($only)" | sort)
[[ -n $fuzzers ]] || { echo "error: there is no fuzzer that is called $only" >&2; exit 1; }

cache=$PWD/bin/fuzz/cache failed=() flags=()
if [[ $time == short ]]; then
  # Looking for new inputs is for the long run: one worker with the same seed tries about the same
  # inputs each time.
  export GODEBUG=fuzzseed=1
  flags=(-test.parallel=1)
  # Minimising an input is bounded by count, too; the default is up to a minute.
  flags+=(-test.fuzzminimizetime=100x)
  # Start without the inputs of earlier runs, which would take longer.
  cache=$(mktemp -d) && trap 'rm -rf "$cache"' EXIT
  # A fuzzer needs hundreds of inputs to change a world. The laws choose new worlds themselves, and
  # run faster without instrumentation.
  laws=$(grep -lE 'newTally\(f|fuzzWorlds\(f' internal/engine/conversion/*_test.go | xargs grep -ho '^func Fuzz[A-Za-z0-9]*' | sed 's/^func //')
  fuzzers=$(grep -vwF -f <(echo "$laws") <<<"$fuzzers")
  # They need one processor, and the other fuzzers another one. With job control, they are a process group
  # of their own, which ends with this script, also if that is interrupted.
  set -m
  test_laws &
  laws_job=$!
  set +m
  trap 'rm -rf "$cache"; kill -- "-$laws_job" 2>/dev/null' EXIT
fi

count=$(wc -l <<<"$fuzzers")
built='' number=0
while read -r package fuzzer; do
  number=$((number + 1))
  binary=$PWD/bin/fuzz/${package//\//-}.test log=$PWD/bin/fuzz/$fuzzer.log
  if [[ $package != "$built" ]]; then
    go test -c -fuzz=. -o "$binary" "./$package" || exit
    built=$package
  fi
  if [[ $1 == short ]]; then
    case $fuzzer in
    FuzzEvaluate | FuzzFits | FuzzReadReview | FuzzTruncated) time=200x ;;
    *) time=2000x ;;
    esac
  fi
  printf '[%d/%d] %s ./%s for %s\n' "$number" "$count" "$fuzzer" "$package" "$time"
  if (cd "$package" && "$binary" -test.run='^$' -test.fuzz="^$fuzzer\$" -test.fuzztime="$time" "${flags[@]}" \
    -test.fuzzcachedir="$cache/$package") >"$log" 2>&1; then
    grep 'execs' "$log" | tail -n 1 | sed 's/^fuzz: /  /'
    continue
  fi
  failed+=("$fuzzer")
  head -c 8000 "$log"
  printf '\nFAILED: %s. Its output is in %s. Try it again with\n' "$fuzzer" "${log#"$PWD"/}"
  if grep -q 'To re-run' "$log"; then
    grep -A1 'To re-run' "$log" | tail -n 1 | sed "s|go test|go test ./$package|"
  else
    echo "  make fuzz FUZZ='$fuzzer\$'"
  fi
done <<<"$fuzzers"
[[ -z ${laws_job:-} ]] || wait "$laws_job" || failed+=(laws)

[[ ${#failed[@]} -eq 0 ]] || { printf '\nerror: these fuzzers found something: %s\n' "${failed[*]}" >&2; exit 1; }
