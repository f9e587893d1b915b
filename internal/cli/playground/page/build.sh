#!/usr/bin/env bash
# build.sh builds dist from src and the packages of package-lock.json. If the inputs and dist are those
# that dist.sha256 describes, it does nothing.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
export LC_ALL=C
page=internal/cli/playground/page

sums() {
  grep -o 'github.com/evanw/esbuild v[^ ]*' internal/dev/tools/go.mod
  sha256sum $page/{.npmrc,build.sh,licences.sh,package.json,package-lock.json,tsconfig.json} $page/src/* $page/dist/*
}

if sums 2>/dev/null | cmp -s - $page/dist.sha256; then exit; fi
"${MAKE:-make}" --no-print-directory --silent bin/npm/node_modules bin/tools/esbuild
bin/npm/node_modules/.bin/tsc -p $page
NODE_PATH=bin/npm/node_modules bin/tools/esbuild $page/src/main.tsx --bundle --minify --format=esm --target=es2022 \
  --jsx=automatic --jsx-import-source=preact --legal-comments=none --metafile=bin/npm/bundled.json --log-level=warning --outfile=$page/dist/playground.js
$page/licences.sh bin/npm/bundled.json >$page/dist/licences.txt
sums >$page/dist.sha256
