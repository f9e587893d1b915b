#!/usr/bin/env bash
# Runs every fuzzer of the tree, one after the other, and all of them even when
# one fails:
#
#   fuzz.sh 30s [regexp]   each for that long; what is found is kept in bin/fuzz,
#                          so that the next run goes on from there
#   fuzz.sh short          by count, so that a busy machine only takes longer: the laws
#                          of conversion in 250 worlds each, which is 1,000 objects, after
#                          which a law must have compared something; and all others with
#                          2,000 inputs, or 200 where one takes long
#
# An input that breaks something is written to testdata/fuzz of the package. Once
# it is mended, commit that file: `go test` tries it again from then on.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
time=${1:-30s} only=${2:-.}
mkdir -p bin/fuzz

# "package fuzzer", one a line.
fuzzers=$(grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' internal |
  sed -E 's|^(.*)/[^/]*_test\.go:func (.*)$|\1 \2|' | grep -E " [A-Za-z0-9]*($only)" | sort)
[[ -n $fuzzers ]] || { echo "error: there is no fuzzer that is called $only" >&2; exit 1; }

cache=$PWD/bin/fuzz/cache failed=() flags=()
if [[ $time == short ]]; then
  # To make an input smaller is bounded by count, too; by default it may take a minute.
  flags=(-test.fuzzminimizetime=100x)
  # Beginning with all that was ever found would take longer than that.
  cache=$(mktemp -d) && trap 'rm -rf "$cache"' EXIT
  # A world takes a fuzzer hundreds of inputs to change; the laws choose new ones by
  # themselves, and faster where nothing is instrumented.
  laws=$(grep -lE 'newTally\(f|fuzzWorlds\(f' internal/conversion/*_test.go | xargs grep -ho '^func Fuzz[A-Za-z0-9]*' | sed 's/^func //')
  fuzzers=$(grep -vwF -f <(echo "$laws") <<<"$fuzzers")
  log=bin/fuzz/laws.log
  # No limit of time: -for would end a law early, and with fewer worlds, on a busy machine.
  if GOGC=400 go test ./internal/conversion -count=1 -timeout 0 -for 24h -v -run "^(${laws//$'\n'/|})\$" -first 1000 -seeds 250 >"$log" 2>&1; then
    grep -o 'Fuzz[A-Za-z]* ([0-9.s]*)\|[0-9]* worlds, [0-9]* steps' "$log" | paste -d ' ' - -
  else
    failed+=(laws)
    grep -A 40 -e '--- FAIL: .*/' "$log" | head -c 8000
    printf '\nFAILED: a law of conversion. The output is in %s\n' "$log"
  fi
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

[[ ${#failed[@]} -eq 0 ]] || { printf '\nerror: these fuzzers found something: %s\n' "${failed[*]}" >&2; exit 1; }
