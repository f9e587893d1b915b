#!/usr/bin/env bash
# keep-times.sh PATTERN... -- COMMAND... runs a command that writes committed files of these patterns
# again. Files with the same content as before get their time back: Go repeats a test if a file that it
# has read has another time.
set -euo pipefail
patterns=()
while [[ $1 != -- ]]; do
  patterns+=("$1")
  shift
done
shift
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
mapfile -d '' files < <(git ls-files -z -- "${patterns[@]}")
for file in "${files[@]}"; do
  [[ -e $file ]] || continue # deleted, and not committed yet
  mkdir -p "$before/$(dirname "$file")"
  cp -p "$file" "$before/$file"
done
"$@"
for file in "${files[@]}"; do
  if cmp -s "$before/$file" "$file"; then touch -r "$before/$file" "$file"; fi
done
